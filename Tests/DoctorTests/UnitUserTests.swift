import Testing

@testable import Doctor

struct UnitUserTests {
  @Test(
    arguments: [
      ("0::/system.slice/pool.service\n", "pool.service"), ("0::/system.slice/pool.service/worker\n", "pool.service"),
      ("12:pids:/user.slice\n0::/system.slice/a.slice/b@1.service\n", "b@1.service"), ("0::/init.scope\n", nil),
      ("0::/user.slice/user-7.slice/user@7.service/app.slice/pool.service\n", nil), ("", nil),
      ("0::/system.slice/docker-ab.scope\n", nil), ("0::/system.slice/a.scope/pool.service\n", nil),
      ("0::/docker/ab/system.slice/pool.service\n", nil),
      ("4:pids:/a.scope/pool.service\n0::/b.service\n", "b.service"),
    ] as [(String, String?)])
  func `the system service of a process is found in its control group`(group: String, unit: String?) {
    #expect(UnitUsers.unit(in: group) == unit)
  }

  @Test(
    arguments: [
      ("Name:\tsh\nUid:\t1\t2\t3\t4\n", 2), ("Uid:\t0\t0\t0\t0\n", 0), ("Uid:\t7\n", nil), ("Name:\tsh\n", nil),
    ] as [(String, UInt32?)])
  func `the user of a process is the effective one`(status: String, user: UInt32?) {
    #expect(UnitUsers.effectiveUser(in: status) == user)
  }
}
