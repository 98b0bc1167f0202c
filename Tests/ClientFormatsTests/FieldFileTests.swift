import ClientFormats
import Testing

struct FieldFileTests {
  private static let uuid = "557e5958-d390-4cbf-b928-2a2b19a1399a"
  private static let other = "00000000-0000-4000-8000-000000000001"

  private func file(_ text: String) -> FieldFile { FieldFile(Array(text.utf8)) }

  @Test(arguments: [
    uuid, "\(uuid)\n", "  \(uuid)\t\r\n\n", "\n\n\u{b}\(uuid)\u{c}\n", "\u{feff}\(uuid)\n",
    "# from the old system\n\(uuid)\n", "557e5958d3904cbfb9282a2b19a1399a\n", "557E5958-D390-4CBF-B928-2A2B19A1399A\n",
  ])
  func `a file that contains only a UUID yields that UUID as written`(text: String) throws {
    let found = try file(text).uuid(of: nil)
    #expect(text.contains(found))
    #expect(found.lowercased().filter { $0 != "-" } == "557e5958d3904cbfb9282a2b19a1399a")
  }

  @Test(arguments: [
    "ID=\(uuid)", "ID=\(uuid)\r\n", "ID: \(uuid)\n", "ID:\(uuid)\n", "  ID = \(uuid)  \n", "ID\t:\t\(uuid)\n",
    "ID=\"\(uuid)\"\n", "ID = '\(uuid)' \n", "ID: \"\(uuid)\" # the old one\n", "ID=\(uuid) # the old one\n",
    "ID=\(uuid)\t#x\n", "# ID=x\n\n[section]\nID=\(uuid)\nid=y\nIDS=z\n", "name=a=b:c\nID=\(uuid)\n",
    "\u{feff}ID=\(uuid)\n", "=x\n:y\nID=\(uuid)\n",
  ])
  func `the value of a field follows its name`(text: String) throws {
    #expect(try file(text).uuid(of: "ID") == Self.uuid)
  }

  @Test(
    arguments: [
      ("id=\(uuid)\n", .missing(field: "ID")), ("", .missing(field: "ID")), ("\(uuid)\n", .missing(field: "ID")),
      ("#ID=\(uuid)\n", .missing(field: "ID")), ("x ID=\(uuid)\n", .missing(field: "ID")),
      ("ID=\(uuid)\nID=\(other)\n", .ambiguous(field: "ID", count: 2)),
      ("ID=\(uuid)\nID: \(uuid)\nID=\n", .ambiguous(field: "ID", count: 3)),
      ("ID=\n", .notUUID(field: "ID")), ("ID=#\n", .notUUID(field: "ID")), ("ID=\(uuid)#x\n", .notUUID(field: "ID")),
      ("ID=\"\(uuid)\n", .notUUID(field: "ID")), ("ID=\"\(uuid)\" x\n", .notUUID(field: "ID")),
      ("ID={\(uuid)\n", .notUUID(field: "ID")), ("ID=\(uuid) \(other)\n", .notUUID(field: "ID")),
      ("ID=x\u{0}\n", .notUUID(field: "ID")),
    ] as [(String, FieldFile.Failure)])
  func `a field that is missing, ambiguous or no UUID is refused`(text: String, failure: FieldFile.Failure) {
    #expect(throws: failure) { try file(text).uuid(of: "ID") }
  }

  @Test(
    arguments: [
      ("", .notUUID(field: nil)), ("\n # x\n", .notUUID(field: nil)), ("hello\n", .notUUID(field: nil)),
      ("\(uuid)\n\(other)\n", .notUUID(field: nil)), ("{\(uuid)\n", .notUUID(field: nil)),
      ("a=1\nb: 2\n", .notChosen([])),
      ("ID=\(uuid)\n", .notChosen(["ID"])), ("a=1\nb=\(uuid)\nc: '\(other)'\nb=\(other)\n", .notChosen(["b", "c"])),
    ] as [(String, FieldFile.Failure)])
  func `without a field name only a file with a single UUID is accepted`(text: String, failure: FieldFile.Failure) {
    #expect(throws: failure) { try file(text).uuid(of: nil) }
  }

  @Test(arguments: [
    "{\(uuid)}", "urn:uuid:\(uuid)\n", "URN:UUID:\(uuid.uppercased())", " {\(uuid.uppercased())}\n", "ID={\(uuid)}",
    "ID: urn:uuid:\(uuid)", "ID=\"{\(uuid)}\" # registry",
  ])
  func `a UUID may have a prefix or braces around it`(text: String) throws {
    #expect(
      try file(text).uuid(of: text.contains("ID=") || text.contains("ID:") && text.hasPrefix("ID") ? "ID" : nil)
        == Self.uuid)
  }

  @Test(arguments: [
    "{\"ID\":\"\(uuid)\"}", "{\"a\":{\"b\":[1,true,\"x\"],\"ID\": \"\(uuid)\"},\"c\":null}",
    "{ \"ID\" : \"{\(uuid)}\" }\n", "{\"x\":\"ID\",\"ID\":\"urn:uuid:\(uuid)\"}",
    "{\"q\\\"\":\"\\\\\",\"ID\":\"\(uuid)\"}",
    "{\n  \"name\": \"ID: x\",\n  \"ID\": \"\(uuid)\"\n}\n",
    "<?xml version='1.0'?>\n<map><string name=\"a\">x</string><string name=\"ID\">\(uuid)</string></map>",
    "<!DOCTYPE map>\n<map>\n  <entry key=\"ID\" value=\"\(uuid)\"/>\n  <entry key='b' value='1'/>\n</map>",
    "<plist version=\"1.0\"><dict><key>n</key><integer>1</integer><key>ID</key>\n<string>{\(uuid)}</string></dict></plist>",
    "\u{feff}<map><string name='ID'> \(uuid) </string></map>",
  ])
  func `the value of a member follows its name in JSON and in preferences of XML`(text: String) throws {
    #expect(try file(text).uuid(of: "ID") == Self.uuid)
    #expect(throws: FieldFile.Failure.missing(field: "id")) { try file(text).uuid(of: "id") }
    #expect(throws: FieldFile.Failure.notChosen(["ID"])) { try file(text).uuid(of: nil) }
  }

  @Test(
    arguments: [
      ("{\"ID\":1,\"x\":\"\(uuid)\"}", .missing(field: "ID")), ("{\"ID\":[\"\(uuid)\"]}", .missing(field: "ID")),
      ("{\"ID\":\"\(uuid)\",\"ID\":\"\(other)\"}", .ambiguous(field: "ID", count: 2)),
      ("{\"ID\"", .missing(field: "ID")),
      ("{\"ID\":\"\\u0035\"}", .notUUID(field: "ID")), ("<string name=\"ID\">", .notUUID(field: "ID")),
      ("<", .missing(field: "ID")),
      ("<string name=\"ID", .notUUID(field: "ID")), ("<key>ID</key><integer>1</integer>", .missing(field: "ID")),
    ] as [(String, FieldFile.Failure)])
  func `a document without one such member is refused`(text: String, failure: FieldFile.Failure) {
    #expect(throws: failure) { try file(text).uuid(of: "ID") }
  }

  @Test func `field names are compared by their bytes`() throws {
    // The same character in composed and decomposed form, which Swift's strings compare as equal.
    let text = "\u{e9}=\(Self.uuid)\ne\u{301}=\(Self.other)\n"
    #expect(try file(text).uuid(of: "\u{e9}") == Self.uuid)
    #expect(try file(text).uuid(of: "e\u{301}") == Self.other)
  }

  @Test func `bytes that are not UTF-8 do no harm`() throws {
    let bytes: [UInt8] = [0xff, 0xfe, 0x0a] + Array("ID=\(Self.uuid)\n".utf8) + [0x00, 0x3d, 0xc3]
    #expect(try FieldFile(bytes).uuid(of: "ID") == Self.uuid)
  }

  @Test func `an error names the file and the field, and repeats no value`() {
    let file = "/etc/a\u{1b}b"
    #expect(FieldFile.Failure.missing(field: "ID").text(file: file) == "\"/etc/a\\u001bb\" has no field \"ID\"")
    #expect(FieldFile.Failure.ambiguous(field: "ID", count: 2).text(file: file).contains("2 fields \"ID\""))
    #expect(
      FieldFile.Failure.notChosen(["a", "b\u{7}"]).text(file: file).hasSuffix(
        "name one field with --field: \"a\", \"b\\u0007\""))
    #expect(FieldFile.Failure.notChosen([]).text(file: file) == "no field of \"/etc/a\\u001bb\" holds a UUID")
    #expect(FieldFile.Failure.notUUID(field: "ID").text(file: file).contains("\"ID\""))
    #expect(FieldFile.Failure.notUUID(field: nil).text(file: file).hasSuffix("does not hold a UUID"))
  }
}
