import TestSupport

/// A way to break the system.
struct Breakage {
  /// The shell script that breaks it.
  let script: String
  /// The check of the first finding, and parts of its cause.
  let check: String
  let cause: [String]
  /// The checks whose findings are symptoms of it.
  var symptoms: [String] = []
  /// The checks that are skipped: systemd was asked first, and the daemon was not contacted.
  var skipped: [String] = []
  /// The result of the first finding.
  var result = "failed"
  /// The repair that people do because of the cause, before the command.
  var repair = "true"
  /// The command that the finding names.
  let mend: String
  /// The editor that corrects a file.
  var editor = "false"
  /// The shell script that removes what the test made.
  var tidy = "true"

  static let units = "identityd.socket identityd.service"
  private static let restart = "systemctl reset-failed \(units) && systemctl restart \(units)"
  private static let state = "/var/lib/identityd"
  private static let program = "/usr/sbin/identityd"
  private static let manifest = "\(Container.manifests)/org.example.broken.app"
  private static let remove = "rm \(manifest); systemctl reload identityd.service"
  private static let fleet = "/etc/identityd/identity-fleet.conf.d/broken.conf"
  /// The containers reach no archive of packages, so the command installs the file that the container has.
  private static let apt = "/usr/local/sbin/apt-get"
  private static let reinstall =
    "printf '#!/bin/sh\\nset -e\\n[ \"$*\" = \"install --reinstall identityd\" ]\\n\(Container.install)\\n' >\(apt); chmod 755 \(apt)"
  private static let file = "\(Container.configurations)/broken.conf"
  /// Makes every start fail.
  private static let loop = """
    mkdir -p \(Container.dropIns)
    printf '[Service]\\nExecStart=\\nExecStart=/bin/sh -c "exit 42"\\n' >\(Container.dropIns)/loop.conf
    systemctl daemon-reload; systemctl --no-block restart identityd.service
    """
  private static let unloop = "rm \(Container.dropIns)/loop.conf; systemctl daemon-reload"

  /// Starts the daemon on a bind mount that alone is read-only, and not its file system.
  private static let bindReadOnly = """
    systemctl stop \(units); mount --bind \(state) \(state); mount -o remount,bind,ro \(state)
    systemctl start \(units)

    """
  private static let unbind = "systemctl stop \(units); umount \(state); systemctl start \(units)"

  private static let ofUnits = [
    Breakage(
      script: "rm /run/identityd/identityd.sock", check: "socket",
      cause: ["/run/identityd/identityd.sock is not there"], mend: "systemctl restart identityd.socket"),
    Breakage(
      script: "chmod 0700 /run/identityd; ! setpriv --reuid=1 --clear-groups identityctl ping", check: "socket",
      cause: ["users other than root may not enter /run/identityd, which has mode 0700"],
      mend: "chmod a+x /run/identityd"),
    Breakage(
      script: """
        systemctl stop \(units)
        sed -i /^identityd:/d /etc/passwd /etc/shadow /etc/group /etc/gshadow
        systemctl --no-block start \(units)
        tries=0
        until [ "$(systemctl show --property=NRestarts --value identityd.service)" != 0 ]; do
          tries=$((tries + 1)); [ $tries -lt 300 ]; sleep 0.1
        done
        """, check: "unit", cause: ["the user identityd, which identityd.service runs as, does not exist"],
      symptoms: ["unit"],
      mend: "systemd-sysusers && systemctl reset-failed \(units) && systemctl restart \(units)"),
    Breakage(
      script: loop, check: "unit",
      cause: ["identityd.service ", "exit status 42", "see 'journalctl --unit=identityd.service'"],
      skipped: ["socket", "store"], repair: unloop, mend: restart),
    Breakage(
      script: """
        \(loop)
        printf '[Unit]\\nStartLimitIntervalSec=1h\\nStartLimitBurst=3\\n' >>\(Container.dropIns)/loop.conf; systemctl daemon-reload
        tries=0
        until systemctl --quiet is-failed identityd.service; do
          tries=$((tries + 1)); [ $tries -lt 600 ]; sleep 0.1
        done
        """, check: "unit", cause: ["has failed", "exit status 42", "see 'journalctl --unit=identityd.service'"],
      skipped: ["socket", "store"], repair: unloop, mend: restart),
    Breakage(
      script: "printf '[Log]\\nLevel=round\\n' >\(file); systemctl reload identityd.service || true",
      check: "configuration", cause: ["\(file):2: [Log] Level= cannot be 'round'; allowed: "],
      mend: "${EDITOR:-vi} \(file) && systemctl reload identityd.service", editor: "sed -i s/round/info/",
      tidy: "rm \(file)"),
    Breakage(
      script: "printf '[Log]\\nLevel=round\\n' >\(file); systemctl restart identityd.service || true",
      check: "configuration", cause: ["\(file):2: [Log] Level= cannot be 'round'; allowed: "], symptoms: ["unit"],
      mend: "${EDITOR:-vi} \(file) && \(restart)", editor: "sed -i s/round/info/", tidy: "rm \(file)"),
    Breakage(
      script: "printf '[Log]\\nLevl=info\\n' >\(file)", check: "configuration",
      cause: ["\(file):2: unknown setting [Log] Levl=; it is ignored"], result: "warning",
      mend: "${EDITOR:-vi} \(file) && systemctl reload identityd.service", editor: "sed -i s/Levl/Level/",
      tidy: "rm \(file)"),
    Breakage(
      script: """
        systemctl stop \(units); rm -rf /root/copy; cp -a \(state) /root/copy
        rm \(state)/identityd.db; systemctl start \(units)
        """, check: "store", cause: ["the database is gone", "those made since are lost"],
      symptoms: ["peer", "master-key"],
      mend: """
        rm -rf \(state).next && cp -aT COPY \(state).next && systemctl stop \(units) \
        && mv --backup=numbered -T \(state) \(state).damaged \
        && mv -T \(state).next \(state) && systemctl start \(units)
        """, tidy: "rm -rf \(state).damaged /root/copy"),
    Breakage(
      script: """
        systemctl stop \(units); rm -rf /root/copy; cp -a \(state) /root/copy
        mount -t tmpfs tmpfs \(state); cp -a /root/copy/. \(state); mount -o remount,ro \(state)
        systemctl --no-block start \(units)
        """, check: "space", cause: ["\(state) is on a file system that is mounted read-only at \(state)"],
      mend: "mount -o remount,rw \(state)",
      tidy: "systemctl stop \(units); umount \(state); rm -rf /root/copy; systemctl start \(units)"),
    Breakage(
      script: bindReadOnly, check: "space",
      cause: ["\(state) is on a file system that is mounted read-only at \(state)"],
      symptoms: ["store"], mend: "mount -o remount,bind,rw \(state) && systemctl restart identityd.service",
      tidy: unbind),
    Breakage(
      script: "\(bindReadOnly)mount -o remount,bind,rw \(state)", check: "space",
      cause: ["\(state) can be written, but not by the daemon: its copy of the mount at \(state)"],
      symptoms: ["store"], mend: "systemctl restart identityd.service", tidy: unbind),
  ]

  private static let stored = "\(state)/identityd.db"

  private static let ofFiles = [
    Breakage(
      script: "chmod 0600 /run/identityd/identityd.sock", check: "socket",
      cause: ["not every user may use /run/identityd/identityd.sock, which has mode 0600"],
      mend: "chmod 0666 /run/identityd/identityd.sock"),
    Breakage(
      script: "systemctl mask --now identityd.socket identityd.service", check: "unit",
      cause: ["identityd.socket is masked"], symptoms: ["socket"],
      mend: "systemctl unmask identityd.socket identityd.service && systemctl start identityd.socket"),
    Breakage(
      script: "systemctl disable identityd.socket", check: "unit",
      cause: ["identityd.socket is not started at boot"], result: "warning",
      mend: "systemctl enable identityd.socket"),
    Breakage(
      script: "mv \(program) /root/identityd; systemctl restart --no-block identityd.service; sleep 1", check: "unit",
      cause: ["\(program) does not exist"], symptoms: ["unit"], repair: reinstall,
      mend: "apt-get install --reinstall identityd && \(restart)", tidy: "rm \(apt)"),
    Breakage(
      script: "chmod 0644 \(program); systemctl restart --no-block identityd.service; sleep 1", check: "unit",
      cause: ["\(program) is not executable"], symptoms: ["unit"], repair: reinstall,
      mend: "apt-get install --reinstall identityd && \(restart)", tidy: "rm \(apt)"),
    Breakage(
      script: "chown root: \(stored)", check: "permissions",
      cause: ["\(stored) belongs to uid 0, not to uid "], mend: "chown identityd:identityd \(stored)"),
    Breakage(
      script: "chmod 0755 \(state)", check: "permissions", cause: ["\(state) has mode 0755, not 0700"],
      mend: "chmod 0700 \(state)"),
    Breakage(
      script: "chmod 0000 \(state)", check: "permissions",
      cause: ["\(state) has mode 0000, not 0700: the daemon cannot use it"],
      mend: "chmod 0700 \(state) && systemctl restart identityd.service"),
    Breakage(
      script: "chmod 0000 \(state)/master.key; systemctl restart identityd.service", check: "permissions",
      cause: ["\(state)/master.key has mode 0000, not 0600: the daemon cannot use it"], symptoms: ["master-key"],
      mend: "chmod 0600 \(state)/master.key && systemctl restart identityd.service"),
    Breakage(
      script: "cp /etc/hostname \(state)/notes", check: "permissions",
      cause: ["\(state) has files that are not identityd's: notes, "], result: "warning",
      repair: "mv \(state)/notes /root/notes", mend: "ls -l \(state)", tidy: "rm /root/notes"),
    Breakage(
      script: """
        systemctl stop \(units); rm -rf /root/copy; cp -a \(state) /root/copy
        mount -t tmpfs -o size=24m,mode=700,uid=identityd,gid=identityd tmpfs \(state); cp -a /root/copy/. \(state)
        head -c 14M /dev/zero >\(state)/video.mp4; systemctl start \(units)
        """, check: "space",
      cause: [
        "MiB are free on the file system of \(state). These files there are not identityd's: video.mp4 (14336 KiB)"
      ],
      repair: """
        mv \(state)/video.mp4 /root/; systemctl stop \(units); rm -rf /root/copy; cp -a \(state) /root/copy
        umount \(state); rm -rf \(state); cp -a /root/copy \(state); systemctl start \(units)
        """, mend: "ls -lh \(state)", tidy: "rm -rf /root/copy /root/video.mp4"),
    Breakage(
      script:
        "systemd-id128 new >/root/new-id; cp -a /etc/machine-id /root/old-id; mkdir -p /var/log/journal/$(cat /root/old-id); "
        + "rm -f /var/lib/dbus/machine-id; cat /root/new-id >/etc/machine-id", check: "machine-id",
      cause: [
        "/etc/machine-id changed since identityd started",
        "the journal's directory /var/log/journal has one that it knows",
      ],
      result: "warning", mend: "sh -c 'basename /var/log/journal/",
      tidy: "cmp /etc/machine-id /root/old-id && rm /root/old-id /root/new-id"),
  ]

  private static let ofManifests = [
    Breakage(
      script:
        "printf '[App]\\nUnit=player.service\\n' >\(manifest); chmod 0666 \(manifest); systemctl reload identityd.service",
      check: "manifests", cause: ["\(manifest) has mode 0666: everybody can change it"],
      mend: "chmod go-w \(manifest)", tidy: remove),
    Breakage(
      script:
        "printf '[App]\\nUnit=player.service\\n' >\(manifest); chmod 0000 \(manifest); systemctl reload identityd.service",
      check: "manifests", cause: ["\(manifest) has mode 0000: the daemon cannot read it"], symptoms: ["manifests"],
      mend: "chmod o+r \(manifest) && systemctl reload identityd.service", tidy: remove),
    Breakage(
      script: "printf '[App]\\nUnit=player\\n' >\(manifest); systemctl reload identityd.service", check: "manifests",
      cause: ["\(manifest):2: "], mend: "${EDITOR:-vi} \(manifest)", editor: "sed -i s/player/player.service/",
      tidy: remove),
    Breakage(
      script: """
        printf '[App]\\nUser=newcomer\\n' >\(manifest); systemctl reload identityd.service
        identityctl --json check | grep -q 'a package is being installed'
        printf 'u newcomer - -\\n' >/usr/lib/sysusers.d/newcomer.conf; sleep 31
        """, check: "manifests", cause: ["the user newcomer does not exist yet"],
      mend: "systemd-sysusers && systemctl reload identityd.service",
      tidy: "\(remove); rm /usr/lib/sysusers.d/newcomer.conf"),
    Breakage(
      script: """
        getent passwd listener >/dev/null || useradd --create-home listener
        printf '[App]\\nUnit=player.service\\n' >\(manifest); systemctl reload identityd.service
        systemd-run --quiet --unit=player --uid=listener sleep infinity
        """, check: "manifests",
      cause: ["Unit=player.service without User=", "runs as listener", "add the line 'User=listener'"],
      result: "warning", mend: "${EDITOR:-vi} \(manifest) && systemctl reload identityd.service",
      editor: "sed -i /Unit/aUser=listener", tidy: "systemctl stop player.service; \(remove)"),
    Breakage(
      script: """
        dpkg --install \(Container.others)/identity-fleet_*.deb
        mkdir -p /etc/identityd/identity-fleet.conf.d
        printf '[Fleet]\\nBroker=nonsense\\n' >\(fleet); systemctl restart identity-fleet.service || true
        """, check: "fleet",
      cause: ["identity-fleet.service refuses its configuration: \(fleet):2: [Fleet] Broker= cannot be 'nonsense'"],
      mend: "${EDITOR:-vi} \(fleet) && systemctl restart identity-fleet.service", editor: "sed -i /Broker/d",
      tidy: "dpkg --purge identity-fleet; rm -f \(fleet)"),
  ]

  private static let password = "/etc/credstore/fleet.password"
  private static let untilLive =
    "tries=0; until identityctl fleet status | grep -q state=live; do tries=$((tries + 1)); [ $tries -lt 100 ]; sleep 0.2; done"
  /// Makes an account of the fleet, at a broker that wants a password.
  private static let account = """
    dpkg --install \(Container.others)/identity-fleet_*.deb
    mkdir -p /etc/identityd/identity-fleet.conf.d /etc/credstore /run/broker
    printf 'listener 1883 127.0.0.1\nallow_anonymous false\npassword_file /run/broker/passwords\n' >/run/broker/conf
    mosquitto_passwd -b -c /run/broker/passwords site right; chown -R mosquitto: /run/broker
    systemd-run --quiet --unit=broker mosquitto -c /run/broker/conf
    printf '[Fleet]\nBroker=mqtt://127.0.0.1\nUsername=site\nSpread=0\n' >\(fleet)
    printf right >\(password); chmod 600 \(password)
    systemctl enable --now identity-fleet.service
    identityctl account create alice; \(untilLive)

    """
  private static let endAccount = """
    identityctl account leave --yes
    for try in $(seq 900); do [ "$(identityctl account)" ] || break; sleep 0.1; done
    systemctl stop broker.service; rm -rf \(fleet) \(password) /run/broker; dpkg --purge identity-fleet

    """

  private static let ofFleet = [
    Breakage(
      script: "\(account)printf wrong >\(password); systemctl restart identity-fleet.service; sleep 1", check: "fleet",
      cause: ["refuses the user or the password: ", "the password is the credential in \(password)"],
      repair: "printf right >\(password)",
      mend: "identityctl fleet credentials && systemctl restart identity-fleet.service", tidy: endAccount),
    Breakage(
      script: "\(account)\(bindReadOnly)systemctl restart --no-block identity-fleet.service; sleep 5", check: "space",
      cause: ["\(state) is on a file system that is mounted read-only at \(state)"], symptoms: ["store", "fleet"],
      mend: "mount -o remount,bind,rw \(state) && systemctl restart identityd.service",
      tidy: "\(untilLive); \(endAccount)\(unbind)"),
  ]

  /// Every way to break the system, each with its cause and its repair.
  static let all = ofUnits + ofFiles + ofManifests + ofFleet
}
