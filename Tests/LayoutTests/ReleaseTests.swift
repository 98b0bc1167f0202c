import Foundation
import IdentityCore
import Testing

/// The version and the date of the release, which the code declares once and other files repeat.
struct ReleaseTests {
  /// The latest entry of the Debian changelog: its version, and its date such as `Tue, 24 Nov 2026`.
  private func latestDebianEntry() throws -> (version: String, date: String) {
    let text = try Tree.text("packaging/debian/changelog")
    let head = try #require(text.prefixMatch(of: #/identityd \((.+?)\) /#))
    let foot = try #require(text.firstMatch(of: #/\n -- .+?>  (\w+, \d\d \w+ \d+) /#))
    return (String(head.1), String(foot.1))
  }

  @Test func `both kinds of packages have the version of the programs`() throws {
    let (version, _) = try latestDebianEntry()
    let revision = try #require(version.wholeMatch(of: #/(.+)-(\d+)/#), "\(version)")
    #expect(revision.1 == Version.program)
    let specification = try Tree.lines("packaging/rpm/identityd.spec")
    #expect(specification.contains("Version:        \(Version.program)"))
    #expect(specification.contains("Release:        \(revision.2)%{?dist}"))
    let entry = try #require(specification.firstIndex(of: "%changelog")) + 1
    #expect(specification[entry].hasSuffix(" - \(version)"), "\(specification[entry])")
  }

  @Test func `the changelogs have the date of the release`() throws {
    let form = DateFormatter()
    form.locale = Locale(identifier: "en_US_POSIX")
    form.timeZone = TimeZone(identifier: "UTC")
    form.dateFormat = "yyyy-MM-dd"
    let date = try #require(form.date(from: Version.released))
    form.dateFormat = "EEE, dd MMM yyyy"
    #expect(try latestDebianEntry().date == form.string(from: date))
    form.dateFormat = "EEE MMM dd yyyy"
    let changes = try #require(try Tree.text("packaging/rpm/identityd.spec").firstRange(of: "%changelog\n"))
    let rest = try Tree.text("packaging/rpm/identityd.spec")[changes.upperBound...]
    #expect(rest.hasPrefix("* \(form.string(from: date)) "))
  }

  @Test func `the manual and the news name the release`() throws {
    let pages = try Tree.files(below: "packaging/man", "1", "3", "5", "7", "8")
    #expect(pages.count >= 6)
    for page in pages { #expect(try Tree.lines(page).contains(".Os identityd \(Version.program)"), "\(page)") }
    for document in pages + ["Sources/identityd/identityd.docc/Tour.md"] {
      for shown in try Tree.text(document).matches(of: #/(?:identityd |version=|"version":")(\d+\.\d+\.\d+)\b/#) {
        #expect(shown.1 == Version.program, "\(document)")
      }
    }
    #expect(try Tree.text("packaging/NEWS.md").contains("\n## \(Version.program)\n"))
  }
}
