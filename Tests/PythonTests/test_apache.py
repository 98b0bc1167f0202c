#!/usr/bin/python3
"""Proofs before Apache with mod_auth_openidc, which finds the keys in the files of `identityctl proof discovery`."""

import base64, json, os, socket, ssl, subprocess, unittest, urllib.error, urllib.request

from support import PROGRAMS, Daemon, until

from identityd import Client, verbs

AUDIENCE = "https://vault.example.org"
MODULES = "mpm_event authn_core authz_core authz_user auth_openidc alias ssl socache_shmcb"
CONFIGURATION = """
ServerRoot {folder}
ServerName localhost
PidFile {folder}/apache.pid
DefaultRuntimeDir {folder}
ErrorLog {folder}/apache.log
LogLevel warn
Listen 127.0.0.1:{port}
{user}
{modules}
DocumentRoot {folder}/site
SSLEngine on
SSLCertificateFile {folder}/certificate
SSLCertificateKeyFile {folder}/key
# The key set, as identityctl(1) shows it.
Alias /id/{device} {folder}/discovery
<Directory {folder}/discovery>
  Require all granted
</Directory>
OIDCCABundlePath {folder}/certificate
OIDCOAuthVerifyJwksUri {keys}
OIDCOAuthRemoteUserClaim sub
<Location /vault>
  AuthType oauth20
  Require claim aud:{audience}
</Location>
"""


class ApacheTest(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon()
        self.addCleanup(self.daemon.remove)
        # The server runs as another user.
        self.folder = self.daemon.folder
        self.folder.chmod(0o755)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.daemon.configuration = f"[Proof]\nIssuer=https://localhost:{self.port}/id/%d\n"
        self.daemon.start()
        self.device = self.ask(verbs.get_device()).uuid
        self.proof = self.proven()
        configuration = self.publish()
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
            + ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
            + ["-keyout", self.folder / "key", "-out", self.folder / "certificate"],
            check=True,
            capture_output=True,
        )
        site = self.folder / "site"
        site.mkdir()
        (site / "vault").write_text("opened")
        self.start(configuration["jwks_uri"])
        # The address that the issuer names shows the configuration.
        with self.fetch(f"/id/{self.device}/.well-known/openid-configuration") as answer:
            self.assertEqual(json.load(answer), configuration)
        self.assertEqual(configuration["issuer"], f"https://localhost:{self.port}/id/{self.device}")

    def ask(self, request):
        with Client(self.daemon.socket) as client:
            return client.ask(request)

    def proven(self, audience=AUDIENCE):
        return self.ask(verbs.prove(audience)).proof

    def publish(self):
        """Writes the files for relying parties, and returns the configuration."""
        output = self.folder / "discovery"
        subprocess.run(
            [PROGRAMS / "identityctl", "--socket", self.daemon.socket, "proof", "discovery", f"--output={output}"],
            check=True,
            capture_output=True,
        )
        return json.loads((output / ".well-known/openid-configuration").read_text())

    def start(self, keys):
        text = CONFIGURATION.format(
            folder=self.folder,
            port=self.port,
            user="User www-data\nGroup www-data" if os.geteuid() == 0 else "",
            modules="\n".join(f"LoadModule {one}_module /usr/lib/apache2/modules/mod_{one}.so" for one in MODULES.split()),
            device=self.device,
            keys=keys,
            audience=AUDIENCE,
        )
        file = self.folder / "apache.conf"
        file.write_text(text)
        server = subprocess.Popen(["/usr/sbin/apache2", "-X", "-f", file])
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)

        def answers():
            self.assertIsNone(server.poll(), "the server did not start")
            try:
                return self.fetch("/")
            except urllib.error.HTTPError as error:
                error.close()
                return True
            except urllib.error.URLError:
                return False

        until(answers, "the start of the server")
        self.server = server

    def fetch(self, path, proof=None):
        context = ssl.create_default_context(cafile=self.folder / "certificate")
        headers = {} if proof is None else {"Authorization": f"Bearer {proof}"}
        request = urllib.request.Request(f"https://localhost:{self.port}{path}", headers=headers)
        return urllib.request.urlopen(request, context=context, timeout=20)

    def status(self, proof):
        """The status with which the server answers to a client that has a proof."""
        try:
            with self.fetch("/vault", proof) as answer:
                self.assertEqual(answer.read(), b"opened")
                return answer.status
        except urllib.error.HTTPError as error:
            error.close()
            return error.code

    def test_a_proof_opens_and_no_other_does(self):
        self.assertEqual(self.status(self.proof), 200)
        self.assertEqual(self.status(None), 401)
        header, claims, signature = self.proof.split(".")
        changed = bytearray(base64.urlsafe_b64decode(signature + "=="))
        changed[40] ^= 1
        signature = base64.urlsafe_b64encode(changed).rstrip(b"=").decode()
        self.assertEqual(self.status(f"{header}.{claims}.{signature}"), 401)
        self.assertEqual(self.status(self.proven("https://vault.example.com")), 401)
        # A proof of the same key that has expired.
        self.daemon.end()
        self.daemon.start("faketime", "-f", "-2h")
        self.assertEqual(self.status(self.proven()), 401)
        # Another device, whose key the server does not have.
        other = Daemon()
        self.addCleanup(other.remove)
        other.configuration = self.daemon.configuration
        other.start()
        with Client(other.socket) as client:
            self.assertEqual(self.status(client.ask(verbs.prove(AUDIENCE)).proof), 401)

    @unittest.skipUnless(Daemon.is_admin(), "a rotation takes an admin")
    def test_the_server_finds_a_key_of_a_rotation_and_drops_a_revoked_one(self):
        self.assertEqual(self.status(self.proof), 200)
        self.ask(verbs.proof_rotate(revoke=True))
        # Not published yet.
        new = self.proven()
        self.assertEqual(self.status(new), 401)
        self.publish()
        self.assertEqual(self.status(new), 200)
        self.assertEqual(self.status(self.proof), 401)


if __name__ == "__main__":
    unittest.main()
