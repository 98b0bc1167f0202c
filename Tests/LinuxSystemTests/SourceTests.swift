import Glibc
import LinuxSystem
import Testing

struct EntropyTests {
  @Test func `no random number repeats, over many pages of them`() throws {
    var entropy = Entropy()
    var seen: Set<UInt64> = []
    for _ in 0..<5_000 { #expect(seen.insert(try entropy.next()).inserted) }
  }

  @Test func `a copy of an unused reserve yields other numbers`() throws {
    var one = Entropy()
    var other = one
    #expect(try one.next() != other.next())
  }

  @Test(arguments: [0, 1, 16, 256, 4_096, 1 << 20]) func `an array is filled to its end`(count: Int) throws {
    var bytes = [UInt8](repeating: 0, count: count)
    try Entropy.fill(&bytes)
    #expect(bytes.count == count)
    // 16 random bytes are all zero with a probability of 1 in 2^128.
    for start in stride(from: 0, to: count - 15, by: 16) { #expect(bytes[start..<(start + 16)].contains { $0 != 0 }) }
  }

  @Test func `every bit of the numbers takes both values`() throws {
    var entropy = Entropy()
    var (ones, zeros): (UInt64, UInt64) = (0, 0)
    for _ in 0..<200 {
      let bits = try entropy.next()
      ones |= bits
      zeros |= ~bits
    }
    #expect(ones == .max)
    #expect(zeros == .max)
  }
}

struct AccountsTests {
  @Test func `groups are found by name`() throws {
    #expect(try Accounts.groupID(named: "root") == 0)
    #expect(try Accounts.groupID(named: "no-such-group-here") == nil)
    #expect(try Accounts.groupID(named: "") == nil)
  }

  @Test func `users are found by name`() throws {
    #expect(try Accounts.userID(named: "root") == 0)
    #expect(try Accounts.userID(named: "no-such-user-here") == nil)
    #expect(try Accounts.userID(named: "") == nil)
  }

  @Test func `every account that the machine lists is found`() throws {
    func lines(_ path: String) throws -> [[Substring]] {
      guard case .bytes(let bytes) = try ConfigurationAccess.read(path: path, limit: 1 << 20) else { return [] }
      return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map {
        $0.split(separator: ":", omittingEmptySubsequences: false)
      }.filter { $0.count > 3 && !$0[0].hasPrefix("+") && !$0[0].hasPrefix("-") }
    }
    // Of two accounts with one name, the first is found.
    var (users, groups): (Set<Substring>, Set<Substring>) = ([], [])
    for user in try lines("/etc/passwd") where users.insert(user[0]).inserted {
      #expect(try Accounts.userID(named: String(user[0])) == UInt32(user[2]), "\(user[0])")
    }
    for group in try lines("/etc/group") where groups.insert(group[0]).inserted {
      #expect(try Accounts.groupID(named: String(group[0])) == UInt32(group[2]), "\(group[0])")
    }
    #expect(!users.isEmpty && !groups.isEmpty)
  }

  @Test func `this process runs as its effective user`() { #expect(Accounts.ownUserID == geteuid()) }
}

struct ClockTests {
  @Test func `row 41d: the monotonic clock never steps back`() {
    var last = Clock.monotonicMicroseconds
    #expect(last > 0)
    for _ in 0..<10_000 {
      let now = Clock.monotonicMicroseconds
      #expect(now >= last)
      last = now
    }
  }

  @Test func `the wall clock counts milliseconds since 1970`() {
    let before = Int64(time(nil))
    let now = Clock.realtimeMilliseconds
    let after = Int64(time(nil))
    // time(2) may lag behind by one tick.
    #expect(now / 1_000 >= before && now / 1_000 <= after + 1)
  }
}

struct EnvironmentTests {
  @Test func `a variable that is unset or empty is nil`() {
    #expect(Environment["PATH"]?.isEmpty == false)
    #expect(Environment["IDENTITYD_NO_SUCH_VARIABLE"] == nil)
  }
}
