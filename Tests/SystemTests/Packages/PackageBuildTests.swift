import Foundation
import TestSupport
import Testing

/// The packages as files: their build and their contents.
@Suite(.serialized, .needs(Requirement.missingForPackages), .timeLimit(.minutes(10)))
struct PackageBuildTests {
  /// A file or folder in a package.
  private struct Entry: Hashable, CustomStringConvertible {
    let mode: String
    let owner: String
    let path: String

    var description: String { "\(mode) \(owner) \(path)" }
  }

  private static let shell = URL(filePath: "/bin/bash")
  private let scratch: TemporaryFolder
  private let programs: URL
  private typealias Packages = (
    daemon: String, client: String, fleet: String, portal: String, page: String, library: String, development: String,
    python: String
  )
  private let debs: Packages
  private let rpms: Packages
  /// The folder of the packages with debugging symbols.
  private var symbols: String { URL(filePath: debs.daemon).deletingLastPathComponent().path + "/dbgsym" }

  init() throws {
    scratch = try TemporaryFolder()
    programs = try #require(Requirement.programs)
    debs = try Self.all(Requirement.debs)
    rpms = try Self.all(Requirement.rpms)
  }

  private static func all(_ packages: [URL]?) throws -> Packages {
    let paths = try #require(packages).map(\.path)
    let client = try #require(paths.first { $0.contains("/identityd-client") })
    let page = try #require(paths.first { $0.contains("/cockpit-identityd") })
    let fleet = try #require(paths.first { $0.contains("/identity-fleet") })
    let portal = try #require(paths.first { $0.contains("/identity-portal") })
    let python = try #require(paths.first { $0.contains("/python3-identityd") })
    let development = try #require(paths.first { $0.contains(#//libidentity-dev/#) })
    let library = try #require(paths.first { $0.contains("/libidentity") && $0 != development })
    let others = [client, fleet, portal, page, library, development, python]
    let daemon = try #require(paths.first { !others.contains($0) })
    try #require(paths.count == 8)
    return (daemon, client, fleet, portal, page, library, development, python)
  }

  private static func list(_ packages: Packages) -> [String] {
    [
      packages.daemon, packages.client, packages.fleet, packages.portal, packages.page, packages.library,
      packages.development, packages.python,
    ]
  }

  private static func quoted(_ packages: Packages) -> String {
    list(packages).map { "'\($0)'" }.joined(separator: " ")
  }

  /// Runs a script, which must succeed.
  ///
  /// - Returns: its output, without the last line feed.
  @discardableResult
  private func bash(_ script: String, _ environment: [String: String] = [:]) async throws -> String {
    let always = ["IDENTITYD_BIN_DIR": programs.path, "TREE": checkout.path, "SCRATCH": scratch.path]
    let outcome = try await run(
      Self.shell, ["-euo", "pipefail", "-c", script], environment: always.merging(environment) { $1 })
    guard outcome.status == 0 else {
      throw Failure("status \(outcome.status): \(script)\n\(outcome.output)\n\(outcome.errors)")
    }
    return outcome.output.trimmingCharacters(in: .newlines)
  }

  // MARK: Reproducible

  /// rpmbuild takes longest, and the long run has it.
  private static let tools = ["build-source", "build-deb"] + (Trial.isLong ? ["build-rpm"] : [])

  @Test(arguments: tools)
  func `the packages are reproducible bit by bit`(tool: String) async throws {
    // Varies the folder, times and modes of the sources, the time zone, the language, the home, the umask and the year.
    try await bash(
      """
      mkdir "$SCRATCH/a tree" "$SCRATCH/home" "$SCRATCH/temporary"
      cd "$TREE"
      tar --create --exclude=./.build --exclude=./.git . | tar --extract --touch --directory="$SCRATCH/a tree"
      cd "$SCRATCH/a tree"
      chmod --recursive go-rwx .
      umask 077
      faketime '+400 days' packaging/tools/\(tool) --output "$SCRATCH/second"
      """,
      [
        "TZ": "Pacific/Chatham", "LC_ALL": "de_DE.UTF-8", "HOME": scratch["home"], "TMPDIR": scratch["temporary"],
        "SOURCE_DATE_EPOCH": "1", "DEB_BUILD_OPTIONS": "noopt nostrip", "XZ_OPT": "-9",
      ])
    let first =
      switch tool {
      case "build-source": "\"$TREE/packaging/tools/build-source\" --output \"$SCRATCH/first\""
      case "build-deb":
        "cp -r \(Self.quoted(debs)) '\(symbols)' \"$SCRATCH/first\""
      default: "cp \(Self.quoted(rpms)) \"$SCRATCH/first\""
      }
    try await bash(
      """
      mkdir "$SCRATCH/first"
      \(first)
      diff --recursive "$SCRATCH/first" "$SCRATCH/second"
      """)
  }

  @Test(arguments: [
    ("identityd", "usr/sbin/identityd"), ("identityd-client", "usr/bin/identityctl"),
    ("identity-fleet", "usr/sbin/identity-fleet"), ("identity-portal", "usr/libexec/identity-portal"),
  ])
  func `the debugging symbols are those of the program, and name its sources relative to the tree`(
    package: String, program: String
  ) async throws {
    let deb = try #require([debs.daemon, debs.client, debs.fleet, debs.portal].first { $0.contains("/\(package)_") })
    let place = try await bash(
      """
      cd "$SCRATCH"
      dpkg-deb --extract '\(deb)' package
      dpkg-deb --extract '\(symbols)'/\(package)-dbgsym_*.deb symbols
      id=$(readelf --notes package/\(program) | sed -n 's/.*Build ID: //p')
      file=symbols/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug
      objcopy --decompress-debug-sections "$file" plain
      ! grep --quiet --fixed-strings "$TREE/" plain
      # The functions of Swift, too.
      (($(nm plain | grep --count ' [Tt] $s12IdentityWire') > 100))
      address=$(nm plain | sed -n 's/ [Tt] clinux_open$//p')
      addr2line --exe=plain "0x$address"
      """)
    #expect(place.contains(#/^[./]*Sources/CLinux/[A-Za-z]+\.c:\d+/#), "\(place)")
  }

  // MARK: The source package

  @Test func `the source package has the files that git has, and the Debian files at its top`() async throws {
    try await bash(
      """
      cd "$TREE"
      dsc=$(packaging/tools/build-source --output "$SCRATCH/source" | sed -n 1p)
      mkdir "$SCRATCH/git"
      git ls-files -z --cached --others --exclude-standard |
        xargs --null cp --parents --no-dereference --preserve=mode --target-directory="$SCRATCH/git"
      cd "$SCRATCH"
      grep --line-regexp 'Format: 3.0 (quilt)' "$dsc"
      dpkg-source --extract "$dsc" unpacked
      mv unpacked/debian .
      # The state of quilt.
      rm --recursive unpacked/.pc
      diff --recursive --no-dereference git unpacked
      diff --recursive git/packaging/debian debian
      for folder in git unpacked git/packaging/debian debian; do
        (cd "$folder" && find . -mindepth 1 -type f -executable | sort) >"list-${folder//[!a-z]/-}"
      done
      [ -s list-git ]
      diff list-git list-unpacked
      diff list-git-packaging-debian list-debian
      """)
  }

  // MARK: Equal contents

  @Test func `the RPMs have the files of the Debian packages, with the same content, owner and mode`() async throws {
    for (deb, rpm) in zip(Self.list(debs), Self.list(rpms)) {
      let fromDebian = try await debianEntries(deb)
      let fromRPM = try await rpmEntries(rpm)
      let expected = rpm == rpms.page ? ".js" : rpm == rpms.library ? ".so.0" : ".gz"
      #expect(fromRPM.contains { $0.path.hasSuffix(expected) } && fromRPM.count > (rpm == rpms.library ? 0 : 2))
      // An RPM lists only its own folders.
      #expect(fromRPM.subtracting(fromDebian) == [])
      let missing = fromDebian.subtracting(fromRPM).filter { !$0.mode.hasPrefix("d") || $0.path.contains("identityd") }
      #expect(missing == [], "\(rpm)")
      try await bash("rpm2archive - <'\(rpm)' | tar --extract --gzip --directory=\"$SCRATCH\" --one-top-level=rpm")
      try await bash("dpkg-deb --extract '\(deb)' \"$SCRATCH/deb\"")
    }
    try await bash(
      """
      cd "$SCRATCH"
      cp --archive deb/lib/. deb/usr/lib/ && rm --recursive deb/lib
      mv deb/usr/share/zsh/vendor-completions deb/usr/share/zsh/site-functions
      # Each kind of package has the folder and the compiler's options of its distribution for libraries.
      mv deb/usr/lib/*-linux-gnu deb/usr/lib64
      sed --in-place 's|/lib/[a-z0-9_]*-linux-gnu|/lib64|' deb/usr/lib64/pkgconfig/libidentity.pc
      truncate --size=0 {deb,rpm}/usr/lib64/libidentity.so.0
      rm --recursive deb/usr/share/doc/*/{changelog.Debian.gz,copyright} rpm/usr/share/licenses
      find deb/usr/share/doc -type d -empty -delete
      # Only the Debian packages have debugging symbols, which their programs name.
      for program in {deb,rpm}/usr/{sbin/identityd,sbin/identity-fleet,libexec/identity-portal,bin/identityctl}; do
        objcopy --remove-section=.gnu_debuglink "$program"
      done
      diff --recursive deb rpm
      """)
  }

  /// Returns the entries of a Debian package. The changelog and the licence are left out: RPM has them elsewhere.
  private func debianEntries(_ package: String) async throws -> Set<Entry> {
    try await entries("dpkg-deb --contents '\(package)' | awk '{ print $1, $2, $6 }'")
  }

  private func rpmEntries(_ package: String) async throws -> Set<Entry> {
    try await entries(
      """
      rpm --query --package '\(package)' \
        --queryformat '[%{FILEMODES:perms} %{FILEUSERNAME}/%{FILEGROUPNAME} %{FILENAMES}\\n]'
      """)
  }

  /// The folder of the machine's libraries on Debian.
  private static var triplet: String {
    #if arch(arm64)
    "aarch64-linux-gnu"
    #else
    "x86_64-linux-gnu"
    #endif
  }

  private func entries(_ script: String) async throws -> Set<Entry> {
    Set(
      try await bash(script).split(separator: "\n").compactMap { line in
        let words = line.split(separator: " ").map(String.init)
        var path = words[2].trimmingPrefix(".")
        if path.hasSuffix("/") { path.removeLast() }
        let own = #//usr/share/licenses/.*|/usr/share/doc/[^/]+(/changelog\.Debian\.gz|/copyright)?/#
        guard path.wholeMatch(of: own) == nil else { return nil }
        // Maps names that differ: debhelper's old name of /usr/lib, and the folders of zsh's completions and libraries.
        let folders = [
          ("/lib/", "/usr/lib/"), ("/usr/share/zsh/vendor-completions", "/usr/share/zsh/site-functions"),
          ("/usr/lib/\(Self.triplet)", "/usr/lib64"),
        ]
        let folder = folders.first { path.hasPrefix($0.0) }
        let place = folder.map { $0.1 + path.dropFirst($0.0.count) } ?? String(path)
        return Entry(mode: words[0], owner: words[1], path: place)
      })
  }

  @Test func `both kinds of packages have the same version, time, dependencies and configuration`() async throws {
    let version = try await bash("dpkg-parsechangelog --file \"$TREE/packaging/debian/changelog\" --show-field Version")
    let time = try await bash("dpkg-parsechangelog --file \"$TREE/packaging/debian/changelog\" --show-field Timestamp")
    for deb in Self.list(debs) {
      #expect(try await bash("dpkg-deb --field '\(deb)' Version") == version)
    }
    // The changelog of an RPM has only the day.
    let day = try #require(Int(time)) / 86_400
    for rpm in Self.list(rpms) {
      #expect(try await query("%{VERSION}-%{RELEASE} %{BUILDHOST}", rpm) == "\(version) localhost")
      #expect(try #require(Int(try await query("%{BUILDTIME}", rpm))) / 86_400 == day)
    }
    #expect(try await bash("dpkg-deb --field '\(debs.daemon)' Depends").contains("identityd-client (= \(version))"))
    let requires = try await query("[%{REQUIRENAME} %{REQUIREFLAGS:depflags} %{REQUIREVERSION}\n]", rpms.daemon)
    #expect(requires.contains(#/identityd-client(\(x86-64\)|\(aarch-64\))? = /#))
    #expect(requires.contains("= \(version)"))
    #expect(try await bash("dpkg-deb --info '\(debs.daemon)' conffiles") == "/etc/identityd/identityd.conf")
    let flags = try await query("[%{FILEFLAGS:fflags} %{FILENAMES}\n]", rpms.daemon)
    #expect(flags.split(separator: "\n").filter { $0.hasPrefix("c") } == ["cn /etc/identityd/identityd.conf"])
  }

  @Test func `the client package needs neither the daemon nor its libraries`() async throws {
    let depends = try await bash("dpkg-deb --field '\(debs.client)' Depends")
    let requires = try await query("[%{REQUIRENAME}\n]", rpms.client)
    for needs in [depends, requires] {
      #expect(needs.contains("libsodium") && !needs.contains(#/identityd|libsystemd|libsqlite|libinih/#))
    }
  }

  @Test func `only the package of the fleet needs libmosquitto`() async throws {
    let depends = try await bash("dpkg-deb --field '\(debs.fleet)' Depends")
    #expect(depends.contains("libmosquitto1"))
    let requires = try await query("[%{REQUIRENAME}\n]", rpms.fleet)
    #expect(requires.contains("libmosquitto.so.1"))
    for package in [debs.daemon, debs.client] {
      #expect(try await !bash("dpkg-deb --field '\(package)' Depends").contains("mosquitto"))
    }
  }

  @Test func `the library for C needs libc alone, and its development package needs this very library`() async throws {
    let version = try await bash("dpkg-deb --field '\(debs.library)' Version")
    let needs = try await bash("dpkg-deb --field '\(debs.library)' Depends")
    #expect(needs.wholeMatch(of: #/libc6 \(>= [0-9.]+\)/#) != nil, "\(needs)")
    #expect(try await bash("dpkg-deb --field '\(debs.library)' Multi-Arch") == "same")
    let depends = try await bash("dpkg-deb --field '\(debs.development)' Depends")
    #expect(depends == "libidentity0 (= \(version))")
    let requires = try await query("[%{REQUIRENAME} ]", rpms.development)
    #expect(requires.contains(#/libidentity\(/#))
  }

  @Test func `the package of the page is for every machine, and has the files that the page loads`() async throws {
    #expect(try await bash("dpkg-deb --field '\(debs.page)' Architecture") == "all")
    #expect(try await query("%{ARCH}", rpms.page) == "noarch")
    #expect(try await bash("dpkg-deb --field '\(debs.page)' Depends") == "cockpit-bridge (>= 287), identityd-client")
    try await bash(
      """
      cd "$SCRATCH"
      dpkg-deb --extract '\(debs.page)' page
      cd page/usr/share/cockpit/identityd
      wanted=$(sed -nE 's/.*(src|href)="([a-z.]+\\.(js|css))".*/\\2/p' index.html
        sed -nE 's|.* from "\\./(.*)";|\\1|p' ./*.js)
      [ "$(wc -w <<<"$wanted")" -gt 15 ]
      for file in $wanted; do
        # Cockpit answers po.js with the language of the user.
        [ -f "${file/#po.js/po.de.js}" ]
      done
      [ ! -e package.json ] && [ ! -e de.po ]
      """)
  }

  @Test func `the package for Python is for every machine, and needs nothing but Python`() async throws {
    #expect(try await bash("dpkg-deb --field '\(debs.python)' Architecture") == "all")
    #expect(try await query("%{ARCH}", rpms.python) == "noarch")
    #expect(try await bash("dpkg-deb --field '\(debs.python)' Depends").contains(#/^python3:any( \(>= 3\.11~?\))?$/#))
    try await bash(
      """
      cd "$SCRATCH"
      dpkg-deb --extract '\(debs.python)' python
      cd python/usr
      # As keyring finds its backend.
      PYTHONPATH=$PWD/lib/python3/dist-packages /usr/bin/python3 -B -c '
      from importlib.metadata import distribution
      made = distribution("identityd")
      assert [one.load().__name__ for one in made.entry_points if one.group == "console_scripts"] == ["main", "main"]'
      [ "$(ls bin)" = docker-credential-identityd$'\\n'git-credential-identityd ]
      """)
  }

  private func query(_ format: String, _ rpm: String) async throws -> String {
    try await bash("rpm --query --package --queryformat \"$FORMAT\" '\(rpm)'", ["FORMAT": format])
  }

  // MARK: The build

  @Test func `the translators' file has the text of the question`() async throws {
    try await bash(
      """
      cp --recursive "$TREE/packaging/debian" "$SCRATCH/debian"
      cd "$SCRATCH/debian"
      debconf-updatepo --podir=po
      diff --ignore-matching-lines=POT-Creation-Date po/templates.pot "$TREE/packaging/debian/po/templates.pot"
      """)
  }

  @Test func `the packages that build-deb installs are those that the source package needs`() async throws {
    try await bash(
      """
      cd "$TREE"
      source packaging/tools/prerequisites.sh
      installed=" ${BUILD_PACKAGES[*]} ${DEB_PACKAGES[*]} "
      needed=$(sed -n '/^Build-Depends:/,/^[A-Z]/s/^ \\([a-z0-9-]*\\).*/\\1/p' packaging/debian/control)
      [ $(wc -w <<<"$needed") -gt 5 ]
      for package in build-essential $needed; do
        # debhelper provides its levels and most add-ons.
        case $package in
          dh-sequence-python3) package=dh-python ;;
          dh-sequence-* | debhelper-compat) package=debhelper ;;
        esac
        [[ $installed == *" $package "* ]] || { echo "$package is not installed" >&2 && exit 1; }
      done
      """)
  }
}
