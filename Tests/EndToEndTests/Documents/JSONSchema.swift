import Foundation
import TestSupport

/// The JSON Schema of `identityctl --json`, which the packages ship.
enum JSONSchema {
  private static let file = Document.root.appending(path: "packaging/identityctl.schema.json")

  /// A validator that reads lines: a definition of the schema, a space, and a document. It prints what is wrong.
  ///
  /// A client must accept names that the schema lacks, since a later daemon may send them. This daemon must send none.
  private static let validator = """
    import json, sys
    from jsonschema import Draft202012Validator
    schema = json.load(open(sys.argv[1]))
    Draft202012Validator.check_schema(schema)
    def close(node):
        if isinstance(node, dict):
            if "properties" in node: node.setdefault("additionalProperties", False)
            for child in node.values(): close(child)
        elif isinstance(node, list):
            for child in node: close(child)
    close(schema["$defs"])
    for line in sys.stdin:
        name, text = line.split(" ", 1)
        validator = Draft202012Validator({"$ref": "#/$defs/" + name, "$defs": schema["$defs"]})
        for error in validator.iter_errors(json.loads(text)): print(name, text, error.message)
    """

  /// Returns what the validator finds wrong with documents. Empty if they all are valid.
  ///
  /// - Parameter documents: documents with the verbs whose answers they are, or with other names of definitions.
  static func faults(in documents: [(definition: String, document: String)]) throws -> String {
    let lines = documents.map { "\($0.definition.replacing(" ", with: "-")) \($0.document)" }
    let result = try run(["python3", "-c", validator, file.path], input: lines.joined())
    return result.output + result.errors
  }
}
