import Foundation
import TestSupport
import Testing

/// The programs of the README's section "Use it from", each of them the real one.
struct UseTests {
  /// Installs the libraries for C and Python below `$HOME`, as packages do below /usr.
  private static let preparation = """
    mkdir -p ~/.docker ~/source/packaging/debian
    cp -r "$SOURCE/packaging/c" ~/source/packaging
    cp "$SOURCE/packaging/debian/changelog" ~/source/packaging/debian
    make --quiet -C ~/source/packaging/c install prefix="$HOME/usr" CFLAGS=-O1 >&2
    "$SOURCE/packaging/python/install" ~/modules ~/programs
    cp "$SOURCE/packaging/examples/client.c" .
    sudo() { "$@"; }
    export PATH=$HOME/programs:$PATH PYTHONPATH=$HOME/modules
    export PKG_CONFIG_PATH=$HOME/usr/lib/pkgconfig LD_LIBRARY_PATH=$HOME/usr/lib

    """

  /// Uses each program after the README's commands, and prints a line for it.
  private static let uses = """
    ./client get device | head --lines=1
    printf 'protocol=https\\nhost=git.example\\nusername=alice\\npassword=hunter3\\n\\n' | git credential approve
    printf 'protocol=https\\nhost=git.example\\n\\n' | GIT_TERMINAL_PROMPT=0 git credential fill | grep ^password=
    helper=docker-credential-$(jq -r .credsStore ~/.docker/config.json)
    printf '{"ServerURL":"https://hub.example","Username":"alice","Secret":"hunter4"}' | $helper store
    echo https://hub.example | $helper get | jq -r .Secret
    keyring get mail alice
    echo "$OTEL_RESOURCE_ATTRIBUTES"
    """

  @Test func `each command of the README's section works`() throws {
    let daemon = try DaemonUnderTest().start()
    let home = daemon.folder.appending(path: "home")
    try FileManager.default.createDirectory(at: home, withIntermediateDirectories: false)
    let commands = try Document(.readme).commands(of: "uses")
    #expect(commands.count == 9)
    let script = Self.preparation + commands.joined(separator: "\n") + "\n" + Self.uses
    let path = "\(DaemonUnderTest.binaries.path):/usr/bin:/bin"
    let result = try run(
      ["bash", "-euc", "cd ~; set -o pipefail; \(script)"],
      environment: [
        "HOME": home.path, "PATH": path, "SOURCE": Document.root.path, "IDENTITYD_SOCKET": daemon.socket,
        "PYTHONDONTWRITEBYTECODE": "1",
      ])
    #expect(result.status == 0, "\(result)")
    let device = try daemon.uuid("get device")
    let lines = result.output.split(separator: "\n").map(String.init)
    // A systemd unit; CredentialTests starts one with such a line.
    #expect(lines.first == "LoadCredential=key:\(daemon.socket)", "\(lines)")
    // A shell, a socket, Python and C.
    #expect(lines.dropLast().count { $0.contains(device) } == 4, "\(lines)")
    #expect(lines.suffix(4).prefix(3) == ["password=hunter3", "hunter4", "hunter2"], "\(lines)")
    #expect(lines.last?.hasPrefix("host.id=\(device),") == true, "\(lines)")
  }
}
