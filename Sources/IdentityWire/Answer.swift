extension Verb {
  /// A value in an answer. The name and the kind decide its form in JSON (identityctl(1), section JSON).
  package struct Field: Sendable {
    /// The kinds of values.
    package enum Kind: Sendable {
      /// Any text.
      case word
      /// A UUID, which `--format` can write in another form.
      case uuid
      /// A time (RFC 3339).
      case time
      /// A decimal number.
      case number
      /// `yes` or `no`.
      case boolean
      /// Words that are joined by commas.
      case list
      /// Bytes in Base64 (RFC 4648, section 4).
      case base64
      /// A document in JSON, which `--json` writes as it is: an object in which the member of the field's name is an array
      /// of objects. It is the only value of its answer.
      case document
    }

    /// The name of an attribute, or for a positional word its name in JSON.
    package let name: String
    /// The kind of the value.
    package let kind: Kind
    /// Whether an answer may lack the value.
    package var isOptional = false
    /// Whether the empty text stands for no value.
    package var isNullable = false
    /// The beginning of the attributes that together are this field, such as `attr.`; nil if the field is one value.
    package var prefix: String?

    package init(_ name: String, _ kind: Kind) {
      self.name = name
      self.kind = kind
    }

    /// Declares a field of this kind.
    package static func word(_ name: String) -> Field { Field(name, .word) }
    /// Declares a field of this kind.
    package static func uuid(_ name: String) -> Field { Field(name, .uuid) }
    /// Declares a field of this kind.
    package static func time(_ name: String) -> Field { Field(name, .time) }
    /// Declares a field of this kind.
    package static func number(_ name: String) -> Field { Field(name, .number) }
    /// Declares a field of this kind.
    package static func boolean(_ name: String) -> Field { Field(name, .boolean) }
    /// Declares a field of this kind.
    package static func list(_ name: String) -> Field { Field(name, .list) }
    /// Declares a field of this kind.
    package static func base64(_ name: String) -> Field { Field(name, .base64) }

    /// Declares a field of this kind.
    package static func document(_ name: String) -> Field { Field(name, .document) }

    /// Declares attributes whose names begin with a prefix, such as `attr.NAME=V`. Their field is an object with the
    /// rests of the names.
    package static func prefixed(_ prefix: String, named name: String) -> Field {
      var field = Field(name, .word).optional
      field.prefix = prefix
      return field
    }

    /// The field, which an answer may lack.
    package var optional: Field {
      var field = self
      field.isOptional = true
      return field
    }

    /// The field, whose empty text stands for no value.
    var nullable: Field {
      var field = self
      field.isNullable = true
      return field
    }
  }

  /// The content of the final line, or of each row.
  package struct Line: Sendable {
    /// The positional words, in order.
    package let words: [Field]
    /// The attributes, in order.
    package let attributes: [Field]
    /// Whether the line has further attributes, which depend on its words. Their values are words.
    package let isOpen: Bool

    package init(_ words: [Field] = [], _ attributes: [Field] = [], isOpen: Bool = false) {
      self.words = words
      self.attributes = attributes
      self.isOpen = isOpen
    }

    /// The words, then the attributes.
    package var fields: [Field] { words + attributes }
  }

  /// The content of an answer, from which `identityctl` makes JSON and tests make the JSON Schema.
  package indirect enum Answer: Sendable {
    /// The final line, without rows.
    case object(Line)
    /// Rows. The final line has only their number.
    case list(Line)
    /// The final line, and rows with a name of their own.
    case report(Line, rows: String, Line)
    /// Rows with one attribute each, which together are one object.
    case properties(Line)
    /// The rows of ``StatusRow``.
    case status
    /// The rows of ``Metric``.
    case metrics
    /// The first answer if the request has one of the attributes, each given by its name or as `name=value`, otherwise
    /// the second.
    case either(ifGiven: [String], Answer, otherwise: Answer)

    /// An `OK` without content.
    package static var nothing: Answer { .object(Line()) }

    /// Returns the answer to the words of a request, which is never ``either(ifGiven:_:otherwise:)``.
    package func answer(to request: [String]) -> Answer {
      guard case .either(let names, let first, let second) = self else { return self }
      let isGiven = names.contains { name in
        request.contains { name.contains("=") ? $0.lowercased() == name : $0.lowercased().hasPrefix("\(name)=") }
      }
      return (isGiven ? first : second).answer(to: request)
    }
  }
}
