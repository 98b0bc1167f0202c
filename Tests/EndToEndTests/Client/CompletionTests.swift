import Foundation
import TestSupport
import Testing

/// The completions in `packaging/completions`, run in their shells with a real daemon.
@Suite(.tags(.slow, .plain)) struct CompletionTests {
  typealias Kind = InteractiveShell.Kind

  private static let nowhere = "/nonexistent/socket"

  private func put(_ daemon: DaemonUnderTest, service: String, account: String, attribute: String = "attr.a=1") throws {
    let added = try identityctl(
      daemon, "item", "put", "service=\(service)", "account=\(account)", "data=eA==", attribute)
    try #require(added.status == 0, "\(added.errors)")
  }

  // MARK: Without a daemon

  @Test(arguments: Kind.allCases)
  func `verbs, levels, attributes, values and options are completed`(kind: Kind) throws {
    let shell = try InteractiveShell(kind, socket: Self.nowhere)
    for (typed, completed) in [
      ("whoa", "whoami"), ("get dev", "get device"), ("GET inst", "GET installation"),
      ("get device ap", "get device app="), ("version compare 1 2 ord", "version compare 1 2 order="),
      ("version compare 1 2 order=l", "version compare 1 2 order=linux"),
      ("version compare 1 gt 2 order=n", "version compare 1 gt 2 order=numeric"),
      ("version compare 1 gt", "version compare 1 gt"), ("version chan", "version changed"),
      ("migrate device x comm", "migrate device x commit=yes"), ("get uuid ver", "get uuid version="),
      ("monitor account tok", "monitor account token"), ("wait inst", "wait installation"),
      ("renew ven", "renew vendor"), ("item put service=a attr", "item put service=a attr."),
      ("item put service=a serv", "item put service=a serv"), ("help item fi", "help item find"),
      ("--help item fi", "--help item find"), ("--json whoa", "--json whoami"),
      ("--socket /nonexistent whoa", "--socket /nonexistent whoami"), ("--qui", "--quiet"), ("-- whoa", "-- whoami"),
      ("restore --adopt", "restore --adopt-device"), ("ping --adopt", "ping --adopt"),
      ("--format=upp", "--format=upper"), ("--format upp", "--format upper"), ("frob fro", "frob fro"),
    ] {
      #expect(try shell.complete(typed).joined(separator: " ") == completed, "\(typed)")
    }
  }

  @Test(arguments: Kind.allCases)
  func `file names are completed where a command or an option takes a file`(kind: Kind) throws {
    let shell = try InteractiveShell(kind, socket: Self.nowhere)
    try Data().write(to: shell.folder.appending(path: "my backup"))
    #expect(try shell.complete("restore ./my") == ["restore", "./my backup"])
    #expect(try shell.complete("migrate device --file ./my") == ["migrate", "device", "--file", "./my backup"])
    // The file completion of bash does not handle `=` unless `=` breaks words.
    guard kind != .bashWithoutBreaks else { return }
    #expect(try shell.complete("migrate device --file=./my") == ["migrate", "device", "--file=./my backup"])
    #expect(try shell.complete("--socket=./my") == ["--socket=./my backup"])
  }

  // MARK: With a daemon

  /// Item names with characters that a shell interprets or that end a word. Each name begins with a different letter,
  /// so that one letter selects it.
  private static let names = [
    "a my mail", "b$(touch executed)", "c`touch executed`", "dit's", "e\"quote\"", "f\\back\\slash", "g:c:o:l:o:n",
    "h=x=y",
    "iüber grün", "j*", "k;touch executed", "l&&touch executed", "m|tab", "nbang!bang", "o{a,b}", "p #hash", "q日本",
    "r~",
    "s$HOME", "t<x>y", "u%s%n", "v[x]?",
    "xin 'quotes'",
  ]

  @Test(arguments: Kind.allCases)
  func `item names are completed verbatim and never executed by the shell`(kind: Kind) throws {
    let daemon = try DaemonUnderTest().start()
    for name in Self.names { try put(daemon, service: name, account: "of \(name)") }
    // A name with a line feed cannot be offered. Only this name begins with `w`, so the completion of `w` proves that.
    try put(daemon, service: "w\nx", account: "w\ttab")
    // An attribute of an item can have the name of another value.
    try put(daemon, service: "z", account: "z", attribute: #"attr.service=y\}"{"#)
    let shell = try InteractiveShell(kind, socket: daemon.socket)
    for name in Self.names {
      #expect(try shell.complete("item read service=\(name.prefix(1))") == ["item", "read", "service=\(name)"])
    }
    #expect(try shell.complete("item read service=w") == ["item", "read", "service=w"])
    #expect(try shell.complete("item read service=y") == ["item", "read", "service=y"])
    for (typed, name) in [
      ("'d", 3), ("\"b", 1), ("\"f", 5), ("'f", 5), ("\"e", 4), ("'x", 22), ("a\\ m", 0), ("dit\\'", 3), ("g:c:", 6),
      ("h=x", 7),
    ] {
      #expect(
        try shell.complete("item read service=\(typed)") == ["item", "read", "service=\(Self.names[name])"], "\(typed)")
    }
    // Attributes earlier on the line narrow the candidates, also if they are quoted or escaped.
    for (typed, name) in [("service='\(Self.names[1])'", 1), ("service=a\\ my\\ mail", 0), ("service=\"dit's\"", 3)] {
      let words = ["item", "delete", "service=\(Self.names[name])", "account=of \(Self.names[name])"]
      #expect(try shell.complete("item delete \(typed) account=") == words, "\(typed)")
    }
    #expect(!FileManager.default.fileExists(atPath: shell.folder.appending(path: "executed").path))
  }

  @Test(arguments: Kind.allCases)
  func `apps and groups are completed by the daemon that --socket names`(kind: Kind) throws {
    let daemon = try DaemonUnderTest().start()
    try put(daemon, service: "mail", account: "alice")
    let app = "user:\(geteuid())"
    let shell = try InteractiveShell(kind, socket: daemon.socket)
    #expect(try shell.complete("get device app=") == ["get", "device", "app=\(app)"])
    #expect(try shell.complete("get device app=user:") == ["get", "device", "app=\(app)"])
    #expect(try shell.complete("app forget us") == ["app", "forget", app])
    #expect(try shell.complete("item read group=u") == ["item", "read", "group=\(app)"])
    let other = try InteractiveShell(kind, socket: Self.nowhere)
    for option in ["--socket=\(daemon.socket)", "--socket \(daemon.socket)", "--socket='\(daemon.socket)'"] {
      #expect(try other.complete("\(option) item read service=m").suffix(3) == ["item", "read", "service=mail"])
    }
  }

  @Test(arguments: Kind.allCases)
  func `without a responding daemon, completion leaves the line unchanged`(kind: Kind) throws {
    let silent = try PlayedDaemon { _ in .lines("") }
    // Each completion waits one second for a daemon that does not answer, so a single line must do.
    for (socket, lines) in [
      (Self.nowhere, ["item read service=m", "get device app=u", "item find group=x", "app forget user"]),
      (silent.socket, ["item read service=m"]),
    ] {
      let shell = try InteractiveShell(kind, socket: socket)
      for typed in lines { #expect(try shell.complete(typed).joined(separator: " ") == typed) }
    }
    try silent.waitForRequest("item find")
  }
}
