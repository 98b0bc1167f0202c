import Foundation
import TestSupport
import Testing

/// Push tokens (identityd-protocol(7), section "PUSH TOKENS").
struct TokenTests {
  /// Returns an answer without its times.
  private func timeless(_ line: String) -> String {
    line.split(separator: " ").filter { word in
      !["created=", "changed=", "confirmed=", "time="].contains { word.hasPrefix($0) }
    }.joined(separator: " ")
  }

  private func time(_ name: String, _ line: String) throws -> String {
    try String(#require(line.split(separator: " ").first { $0.hasPrefix("\(name)=") }).dropFirst(name.count + 1))
  }

  private let app = "user:\(getuid())"

  @Test func `an app has one token for each provider, and a new token replaces it`() throws {
    let daemon = try DaemonUnderTest().start()
    #expect(try daemon.ask("token get fcm").hasPrefix("ERR not-found "))
    let created = try daemon.ask("token put fcm first:TOKEN environment=sandbox topic=org.example.player")
    let device = try daemon.uuid("get device")
    #expect(created == "OK created device=\(device)")
    #expect(try daemon.ask("token put apns other") == "OK created device=\(device)")
    let first = try daemon.ask("token get fcm")
    #expect(
      timeless(first)
        == "OK first:TOKEN provider=fcm app=\(app) device=\(device) environment=sandbox topic=org.example.player state=valid"
    )
    #expect(
      try daemon.ask("token put fcm first:TOKEN environment=sandbox topic=org.example.player")
        == "OK unchanged device=\(device)")
    let confirmed = try daemon.ask("token get fcm")
    #expect(timeless(confirmed) == timeless(first))
    #expect(try time("created", confirmed) == time("created", first))
    #expect(try time("changed", confirmed) == time("changed", first))
    #expect(try time("confirmed", confirmed) > time("confirmed", first))
    #expect(try daemon.ask("token put fcm second") == "OK replaced device=\(device) previous=first:TOKEN")
    let second = try daemon.ask("token get fcm")
    #expect(timeless(second) == "OK second provider=fcm app=\(app) device=\(device) state=valid")
    #expect(try time("created", second) == time("created", first))
    #expect(try time("changed", second) > time("changed", first))
    daemon.end(with: SIGKILL)
    try daemon.start()
    #expect(try daemon.ask("token get fcm") == second)
    #expect(
      try daemon.client().ask("token list").map(timeless) == [
        "* second provider=fcm app=\(app) device=\(device) state=valid",
        "* other provider=apns app=\(app) device=\(device) state=valid", "OK 2",
      ])
    #expect(try daemon.ask("token delete fcm") == "OK")
    #expect(try daemon.ask("token delete fcm").hasPrefix("ERR not-found "))
    #expect(try daemon.client().ask("token list").count == 2)
  }

  @Test func `token invalidate marks only the token that it names, and no later one`() throws {
    let daemon = try DaemonUnderTest().start()
    #expect(try daemon.ask("token invalidate fcm old") == "OK unchanged")
    _ = try daemon.ask("token put fcm old")
    _ = try daemon.ask("token put fcm new")
    #expect(try daemon.ask("token invalidate fcm old") == "OK unchanged")
    #expect(try daemon.ask("token get fcm").contains(" state=valid "))
    for _ in 0..<2 {
      #expect(try daemon.ask("token invalidate fcm new") == "OK invalidated")
      #expect(try daemon.ask("token get fcm").contains(" state=invalid "))
    }
    // The app has registered again, and got the same token.
    #expect(try daemon.ask("token put fcm new").hasPrefix("OK replaced device="))
    #expect(try daemon.ask("token get fcm").contains(" state=valid "))
  }

  @Test func `token list stale= lists the tokens that were not confirmed for that time`() throws {
    let daemon = try DaemonUnderTest().start()
    _ = try daemon.ask("token put old token")
    func providers(_ request: String) throws -> [String] {
      try daemon.client().ask(request).dropLast().map { String($0.split(separator: " ")[2]) }
    }
    // Each put confirms the new token, so that a slow machine may need several rounds.
    let deadline = Date(timeIntervalSinceNow: patience)
    var stale: [String]
    repeat {
      _ = try daemon.ask("token put new token")
      stale = try providers("token list stale=1")
    } while stale != ["provider=old"] && Date() < deadline
    #expect(stale == ["provider=old"])
    #expect(try providers("token list") == ["provider=old", "provider=new"])
    #expect(try providers("token list stale=0") == ["provider=old", "provider=new"])
    #expect(try providers("token list stale=2592000") == [])
    _ = try daemon.ask("token put old token")
    #expect(try providers("token list stale=2") == [])
    for wrong in ["-1", "1.5", "month", "99999999999999999999"] {
      #expect(try daemon.ask("token list stale=\(wrong)").hasPrefix("ERR bad-argument "))
    }
  }

  @Test func `any text of at most 4,096 bytes is a token and is returned unchanged`() throws {
    let daemon = try DaemonUnderTest().start()
    let quoted = ["\"a b\"", "\"ü=1\\n\\t\\\"\\\\\"", "\"name=value\"", "\"\\u007f\"", "日本語"]
    for token in quoted {
      #expect(try daemon.ask("token put fcm \(token)").hasPrefix("OK "))
      #expect(try daemon.ask("token get fcm").hasPrefix("OK "))
      #expect(try daemon.ask("token invalidate fcm \(token)") == "OK invalidated")
    }
    let longest = String(repeating: "é", count: 2_048)
    #expect(try daemon.ask("token put fcm \(longest)").hasPrefix("OK replaced "))
    #expect(try daemon.ask("token get fcm").hasPrefix("OK \(longest) provider=fcm "))
    #expect(try daemon.ask("token put fcm \(longest)x").hasPrefix("ERR limit "))
    #expect(try daemon.ask("token put fcm \"\"").hasPrefix("ERR bad-argument "))
    #expect(try daemon.ask("token put \(String(repeating: "p", count: 256)) x").hasPrefix("ERR bad-argument "))
    #expect(try daemon.ask("token get fcm").hasPrefix("OK \(longest) provider=fcm "))
  }

  @Test func `row 42c: neither events nor the log nor error texts contain a token`() throws {
    let daemon = try DaemonUnderTest().start(["--log-level=debug"])
    let subscriber = try daemon.client()
    #expect(try subscriber.subscribe("token") == ["OK 1"])
    let secret = "dGhlIHRva2Vu:APA91bHun4MxP5egoKMwt2KZFBaFUH"
    for request in [
      "token put fcm \(secret)", "token put fcm \(secret)2", "token invalidate fcm \(secret)2", "token delete fcm",
    ] { #expect(try daemon.ask(request).hasPrefix("OK")) }
    // Errors do not repeat the token either.
    for request in [
      "token put fcm \(secret) \(secret)", "token put fcm token=\(secret)", "token put \(secret)",
      "token invalidate fcm \(secret) x", "token put fcm \(secret) \(secret)=x",
      "token put fcm \(String(repeating: secret, count: 100))",
    ] {
      let answer = try daemon.ask(request)
      #expect(answer.hasPrefix("ERR ") && !answer.contains(secret), "\(answer)")
    }
    let device = try daemon.uuid("get device")
    let hash = try run(["sh", "-c", "printf %s \"$0\" | sha256sum | cut -c1-16", secret]).output.dropLast()
    let events = try (0..<4).map { _ in timeless(try subscriber.line() ?? "") }
    #expect(events[0].hasSuffix("token created app=\(app) provider=fcm device=\(device) fingerprint=\(hash)"))
    for (event, name) in zip(events, ["created", "replaced", "invalidated", "deleted"]) {
      #expect(event.contains(" token \(name) app=\(app) provider=fcm device=\(device) fingerprint="))
      #expect(!event.contains("APA91"))
    }
    #expect(events[1].hasSuffix(events[2].split(separator: " ").last ?? "-"))
    _ = try daemon.ask("token put fcm \(secret)")
    #expect(try subscriber.line()?.contains(" token created ") == true)
    let snapshot = try subscriber.subscribe("token snapshot=yes").first { $0.hasPrefix("*") }
    #expect(snapshot == "* token app=\(app) provider=fcm device=\(device) fingerprint=\(hash)")
    daemon.end()
    #expect(!daemon.log.contains("APA91"))
  }

  @Test(.enabled(if: isRoot, "only an admin may renew"))
  func `a change of the device identifier sends an event for every token`() throws {
    let daemon = try DaemonUnderTest().start()
    for provider in ["fcm", "apns"] { _ = try daemon.ask("token put \(provider) t") }
    let before = try daemon.uuid("get device")
    let subscriber = try daemon.client()
    _ = try subscriber.subscribe("token")
    let listed = try daemon.client().ask("token list")
    let after = try daemon.uuid("renew device")
    for provider in ["fcm", "apns"] {
      let moved = "token rehomed app=\(app) provider=\(provider) device=\(after) previous-device=\(before) fingerprint="
      #expect(try subscriber.line()?.contains(moved) == true)
    }
    // No other attribute of the tokens changes.
    #expect(try daemon.client().ask("token list") == listed.map { $0.replacing(before, with: after) })
    daemon.end(with: SIGKILL)
    try daemon.start()
    #expect(try daemon.client().ask("token list") == listed.map { $0.replacing(before, with: after) })
  }

  @Test(.enabled(if: isRoot, "acting as two users needs root"))
  func `only the app itself and an admin may use its tokens`() throws {
    let daemon = try DaemonUnderTest().start()
    func ask(_ user: Int, _ words: String...) throws -> (status: Int32, output: String) {
      let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
      let result = try run(
        ["setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups", program] + words,
        environment: ["IDENTITYD_SOCKET": daemon.socket])
      return (result.status, result.output)
    }
    #expect(try ask(65_534, "token", "put", "fcm", "mine").status == 0)
    for words in [["put", "fcm", "x"], ["get", "fcm"], ["list"], ["invalidate", "fcm", "mine"], ["delete", "fcm"]] {
      let request = (["token"] + words + ["app=user:65534"]).joined(separator: " ")
      let other = try run(
        [
          "setpriv", "--reuid=1", "--regid=1", "--clear-groups", "socat", "-t", "20", "-",
          "UNIX-CONNECT:\(daemon.socket)",
        ],
        input: "\(request)\nquit\n")
      #expect(other.output.hasPrefix("ERR denied "), "\(request)")
    }
    #expect(try ask(1, "token", "list", "app=*").status == 15)
    #expect(try ask(1, "token", "get", "fcm").status == 16)
    #expect(try ask(65_534, "token", "get", "fcm").output == "mine\n")
    #expect(try daemon.client().ask("token list app=user:65534").count == 2)
    #expect(try daemon.client().ask("token list app=*").count == 2)
    #expect(try daemon.client().ask("token list") == ["OK 0"])
    // An uninstallation deletes the tokens, with an event for each.
    let subscriber = try daemon.client()
    _ = try subscriber.subscribe("token app")
    #expect(try daemon.ask("app forget user:65534") == "OK")
    #expect(try subscriber.line()?.contains(" token deleted app=user:65534 provider=fcm ") == true)
    #expect(try subscriber.line()?.contains(" app uninstalled app=user:65534 ") == true)
    #expect(try daemon.client().ask("token list app=*") == ["OK 0"])
  }

  @Test func `row 30: the number of tokens of an app is limited`() throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    for number in 0..<256 { #expect(try client.ask("token put provider-\(number) t")[0].hasPrefix("OK created ")) }
    #expect(try client.ask("token put another t")[0].hasPrefix("ERR limit "))
    #expect(try client.ask("token put provider-7 u")[0].hasPrefix("OK replaced "))
    #expect(try client.ask("token delete provider-7") == ["OK"])
    #expect(try client.ask("token put another t")[0].hasPrefix("OK created "))
  }
}
