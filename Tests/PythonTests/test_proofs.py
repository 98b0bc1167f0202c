#!/usr/bin/python3
"""Proofs of the daemon before verifiers that know nothing of it: PyJWT, joserfc, jwcrypto, authlib and José."""

import base64, hashlib, hmac, json, os, subprocess, sys, tempfile, time, unittest, warnings
from pathlib import Path

from support import PROGRAMS, Daemon

from identityd import Client, verbs

sys.path.insert(0, os.environ["IDENTITYD_VERIFIERS"])
# authlib says that joserfc is its successor.
warnings.simplefilter("ignore")
import authlib.jose
import joserfc.jwk
import joserfc.jwt
import jwcrypto.jwk
import jwcrypto.jwt
import jwt
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

AUDIENCE = "https://vault.example.org"


def by_pyjwt(proof, keys, audience):
    name = jwt.get_unverified_header(proof)["kid"]
    key = next(key for key in jwt.PyJWKSet.from_dict(keys).keys if key.key_id == name)
    return jwt.decode(proof, key, algorithms=["ES256"], audience=audience)


def by_joserfc(proof, keys, audience):
    found = joserfc.jwt.decode(proof, joserfc.jwk.KeySet.import_key_set(keys), algorithms=["ES256"])
    joserfc.jwt.JWTClaimsRegistry(aud={"essential": True, "value": audience}, leeway=0).validate(found.claims)
    return found.claims


def by_jwcrypto(proof, keys, audience):
    found = jwcrypto.jwt.JWT(check_claims={"aud": audience, "exp": None, "nbf": None}, algs=["ES256"])
    found.leeway = 0
    found.deserialize(proof, jwcrypto.jwk.JWKSet.from_json(json.dumps(keys)))
    return json.loads(found.claims)


def by_authlib(proof, keys, audience):
    reader = authlib.jose.JsonWebToken(["ES256"])
    options = {"aud": {"essential": True, "value": audience}}
    claims = reader.decode(proof, authlib.jose.JsonWebKey.import_key_set(keys), claims_options=options)
    claims.validate()
    return dict(claims)


def by_jose(proof, keys, audience):
    """José verifies the signature and leaves the claims to its caller."""
    with tempfile.NamedTemporaryFile("w") as file:
        json.dump(keys, file)
        file.flush()
        done = subprocess.run(
            ["jose", "jws", "ver", "-i-", "-k", file.name, "-O-"], input=proof, capture_output=True, text=True
        )
    if done.returncode:
        raise ValueError(done.stderr)
    return json.loads(done.stdout)


def by_identityctl(proof, keys, audience):
    with tempfile.NamedTemporaryFile("w") as file:
        json.dump(keys, file)
        file.flush()
        done = subprocess.run(
            [PROGRAMS / "identityctl", "--json", "proof", "verify", f"--keys={file.name}", f"--audience={audience}"],
            input=proof,
            capture_output=True,
            text=True,
        )
    if done.returncode:
        raise ValueError(done.stdout)
    return json.loads(done.stdout)


VERIFIERS = [by_pyjwt, by_joserfc, by_jwcrypto, by_authlib, by_jose, by_identityctl]
OF_CLAIMS = [one for one in VERIFIERS if one is not by_jose]


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def signed(header, claims, key):
    """A JWT that this test signs, as a thief of a key does."""
    message = ".".join(encoded(json.dumps(part).encode()) for part in (header, claims))
    r, s = decode_dss_signature(key.sign(message.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{message}.{encoded(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


class ProofTest(unittest.TestCase):
    def setUp(self):
        self.daemon = self.started()
        self.proof, self.keys = self.proven(self.daemon), self.published(self.daemon)

    def started(self, *wrapper):
        daemon = Daemon()
        self.addCleanup(daemon.remove)
        return daemon.start(*wrapper)

    def ask(self, daemon, request):
        with Client(daemon.socket) as client:
            return client.ask(request)

    def proven(self, daemon):
        return self.ask(daemon, verbs.prove(AUDIENCE)).proof

    def published(self, daemon):
        return json.loads(self.ask(daemon, verbs.proof_keys()))

    def refuse(self, proof, keys, verifiers, audience=AUDIENCE):
        for verifier in verifiers:
            with self.subTest(verifier.__name__), self.assertRaises(Exception):
                verifier(proof, keys, audience)

    def parts(self, proof):
        header, claims, _ = proof.split(".")
        return json.loads(decoded(header)), json.loads(decoded(claims))

    def test_all_accept_a_proof(self):
        for verifier in VERIFIERS:
            with self.subTest(verifier.__name__):
                claims = verifier(self.proof, self.keys, AUDIENCE)
                self.assertEqual(claims["identityd"]["app"], f"user:{os.geteuid()}")
                self.assertEqual(claims["aud"], AUDIENCE)

    def test_another_audience(self):
        self.refuse(self.proof, self.keys, OF_CLAIMS, "https://vault.example.com")

    def test_times_of_a_clock_that_is_wrong(self):
        for offset in ("-2h", "+2h"):
            daemon = self.started("faketime", "-f", offset)
            proof = self.proven(daemon)
            self.assertGreater(abs(self.parts(proof)[1]["iat"] - time.time()), 7_000)
            self.refuse(proof, self.published(daemon), OF_CLAIMS)

    def test_a_changed_claim_and_a_changed_signature(self):
        header, claims, signature = self.proof.split(".")
        content = json.loads(decoded(claims))
        content["identityd"]["app"] = "org.example.other"
        self.refuse(f"{header}.{encoded(json.dumps(content).encode())}.{signature}", self.keys, VERIFIERS)
        bytes = bytearray(decoded(signature))
        bytes[40] ^= 1
        self.refuse(f"{header}.{claims}.{encoded(bytes)}", self.keys, VERIFIERS)

    def test_other_algorithms(self):
        header, claims, _ = self.proof.split(".")
        none = encoded(b'{"alg":"none","typ":"JWT"}')
        self.refuse(f"{none}.{claims}.", self.keys, VERIFIERS)
        # The public key as the secret of an HMAC.
        kid = self.keys["keys"][0]["kid"]
        head = encoded(json.dumps({"alg": "HS256", "kid": kid, "typ": "JWT"}).encode())
        for secret in (self.keys["keys"][0]["x"], json.dumps(self.keys["keys"][0])):
            code = hmac.new(secret.encode(), f"{head}.{claims}".encode(), hashlib.sha256).digest()
            self.refuse(f"{head}.{claims}.{encoded(code)}", self.keys, VERIFIERS)

    def test_the_key_of_another_device(self):
        other = self.started()
        self.refuse(self.proven(other), self.keys, VERIFIERS)
        # Root on the other device names this one and its key.
        key = ec.generate_private_key(ec.SECP256R1())
        header, claims = self.parts(self.proof)
        self.refuse(signed(header, claims, key), self.keys, VERIFIERS)
        numbers = key.public_key().public_numbers()
        header["jwk"] = {
            "kty": "EC",
            "crv": "P-256",
            "x": encoded(numbers.x.to_bytes(32, "big")),
            "y": encoded(numbers.y.to_bytes(32, "big")),
        }
        self.refuse(signed(header, claims, key), self.keys, VERIFIERS)
        # In one set for both devices, general verifiers believe it, and identityctl does not.
        named = header["jwk"] | {"device": "11111111-1111-4111-8111-111111111111", "iss": claims["iss"]}
        numbered = joserfc.jwk.ECKey.import_key(header.pop("jwk")).thumbprint()
        both = {"keys": self.keys["keys"] + [named | {"kid": numbered}]}
        header["kid"] = numbered
        forged = signed(header, claims, key)
        self.assertTrue(by_pyjwt(forged, both, AUDIENCE))
        self.refuse(forged, both, [by_identityctl])

    @unittest.skipUnless(Daemon.is_admin(), "a rotation takes an admin")
    def test_a_rotated_key_stays_and_a_revoked_one_does_not(self):
        self.ask(self.daemon, verbs.proof_rotate())
        for verifier in VERIFIERS:
            self.assertTrue(verifier(self.proof, self.published(self.daemon), AUDIENCE))
        self.ask(self.daemon, verbs.proof_rotate(revoke=True))
        keys = self.published(self.daemon)
        self.refuse(self.proof, keys, VERIFIERS)
        for verifier in VERIFIERS:
            self.assertTrue(verifier(self.proven(self.daemon), keys, AUDIENCE))


if __name__ == "__main__":
    unittest.main()
