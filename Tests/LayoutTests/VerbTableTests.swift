import IdentityWire
import Testing

@Suite struct VerbTableLayoutTests {
  @Test func `no two verbs have the same words`() {
    #expect(Set(VerbTable.verbs.map(\.words)).count == VerbTable.verbs.count)
  }

  @Test func `a summary is one sentence that fits a line`() {
    for verb in VerbTable.verbs {
      #expect(verb.summary.hasSuffix("."), "\(verb.words)")
      #expect(verb.summary.count <= 100, "\(verb.words)")
    }
  }

  @Test func `names have the case in which they are compared`() {
    for verb in VerbTable.verbs {
      #expect(verb.words == verb.words.lowercased())
      for attribute in verb.attributes { #expect(attribute.name == attribute.name.lowercased(), "\(verb.words)") }
      for operand in verb.operands { #expect(operand.name == operand.name.uppercased(), "\(verb.words)") }
      #expect(verb.operands.dropLast().allSatisfy { !$0.repeats }, "\(verb.words)")
    }
  }
}
