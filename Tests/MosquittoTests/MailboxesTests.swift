import Testing

@testable import Mosquitto

/// The bound of the mailbox for reports.
struct MailboxesTests {
  @Test func `a full mailbox has no room until its owner takes the reports`() throws {
    let mailboxes = try Mailboxes()
    let delivery = Delivery(topic: "a", payload: Array(repeating: 7, count: 1 << 18), isRetained: true)
    #expect(mailboxes.hasRoom)
    for _ in 1...4 { mailboxes.report(.received(delivery)) }
    #expect(!mailboxes.hasRoom)
    #expect(mailboxes.takeReports().count == 4)
    #expect(mailboxes.hasRoom)
    #expect(mailboxes.takeReports().isEmpty)
  }
}
