import Testing

@testable import Doctor

struct ForeignFileTests {
  @Test(arguments: [
    "identityd.db", "identityd.db-wal", "identityd.db.rewritten", "identityd.db-wal.damaged-17", "store.key",
    "store.key.damaged-17", "master.key.next", "master.key.new", "witness", "witness.latest", "lock",
  ])
  func `a file of the daemon is known by its name`(name: String) { #expect(ForeignFiles.isOwn(name)) }

  @Test(arguments: ["notes", "locksmith.txt", "witnesses", "identityd.dbx", "master.keys", ".lock", "store", ""])
  func `another file is not`(name: String) { #expect(!ForeignFiles.isOwn(name)) }
}
