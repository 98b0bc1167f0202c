"""A second implementation of the fleet's messages, written from identity-fleet-protocol(7). Needs python3-nacl.

Commands on standard input, one a line, in JSON; an answer a line, in JSON. Bytes are hexadecimal.
"""

import base64
import hashlib
import json
import re
import struct
import sys
import time
import unicodedata

import nacl.bindings as sodium
import nacl.pwhash.argon2id
from nacl.hash import blake2b
from nacl.encoding import RawEncoder

CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
PASSES, MEMORY = 3, 268435456
FILE_HEAD = "identity-fleet-invitation 1"
FILE_KEY = re.compile(r"identityd-backup 1 argon2id ops=([1-9]\d*) memory=([1-9]\d*) salt=([0-9a-f]{32})")


def derive(length, number, context, key):
    """crypto_kdf_derive_from_key, which PyNaCl lacks: BLAKE2b with the number as salt and the context as person."""
    return blake2b(
        b"", digest_size=length, key=key, salt=struct.pack("<Q", number).ljust(16, b"\0"),
        person=context.ljust(16, b"\0"), encoder=RawEncoder)


def keyed(message, key):
    return blake2b(message, digest_size=16, key=key, encoder=RawEncoder)


def stretch(length, password, salt, passes=PASSES, memory=MEMORY):
    return nacl.pwhash.argon2id.kdf(length, password, salt, opslimit=passes, memlimit=memory)


def meet(code):
    """Returns the name of the topics and the key of a code, as people write it."""
    letters = re.sub("[- ]", "", code).upper().replace("I", "1").replace("L", "1").replace("O", "0").encode()
    check = CROCKFORD[blake2b(letters[:15], digest_size=16, encoder=RawEncoder)[0] >> 3]
    assert len(letters) == 16 and letters[15:].decode() == check, "the code is mistyped"
    secret = stretch(48, letters, b"identity-fleet/1")
    return secret[:16].hex(), secret[16:]


class Account:
    def __init__(self, root):
        self.topic_key = derive(32, 1, b"IDfleet1", root)
        self.first_epoch = derive(32, 2, b"IDfleet1", root)
        self.root = root
        self.id = keyed(b"account", self.topic_key).hex()

    def password(self, epoch=None):
        """Returns the password in the epoch of a key, or in the first one."""
        return derive(24, 3, b"IDfleet1", epoch or self.root)

    def topic(self, device, letter="d"):
        tag = self.tag(device)
        return f"identityd/v1/{self.id}/{letter}/{tag[0]}/{tag}"

    def tag(self, device):
        return keyed(device, self.topic_key).hex()

    def next_epoch(self, present, device):
        """Returns the number of the epoch that a device makes after the present one."""
        return (present >> 16) + 1 << 16 | 0xffff - int(self.tag(device)[:4], 16)


class Device:
    def __init__(self, seed):
        self.signing_seed = derive(32, 1, b"IDfldev1", seed)
        self.signing_key, _ = sodium.crypto_sign_seed_keypair(self.signing_seed)
        self.box_key, self.box_secret = sodium.crypto_box_seed_keypair(derive(32, 2, b"IDfldev1", seed))

    def write(self, kind, epoch, key, topic, subject, author, fields, generation=1, counter=0):
        """Returns a message of this device with the fields, which may be given in any order, and with its key."""
        body = {
            "subject": subject.hex(), "generation": generation, "counter": counter,
            "run": sodium.randombytes(16).hex(), "time": time.time_ns() // 1_000_000, "author": author.hex(),
            "fields": [[number, value.hex()] for number, value in sorted([(2, self.signing_key)] + fields)],
        }
        return seal(kind, epoch, key, topic, body, self.signing_seed, sodium.randombytes(24))


def header(kind, epoch, version=1):
    return b"iF" + bytes([version, kind]) + struct.pack(">I", epoch)


def encode(body):
    plain = bytes.fromhex(body["subject"]) + struct.pack(">IQ", body["generation"], body["counter"])
    plain += bytes.fromhex(body["run"]) + struct.pack(">q", body["time"]) + bytes.fromhex(body["author"])
    for kind, value in body["fields"]:
        value = bytes.fromhex(value)
        plain += struct.pack(">BH", kind, len(value)) + value
    plain += b"\0"
    return plain + bytes(-(len(plain) + 64) % 128)


def decode(plain):
    generation, counter = struct.unpack(">IQ", plain[16:28])
    body = {
        "subject": plain[:16].hex(), "generation": generation, "counter": counter, "run": plain[28:44].hex(),
        "time": struct.unpack(">q", plain[44:52])[0], "author": plain[52:68].hex(), "fields": [],
    }
    place = 68
    while plain[place]:
        kind, length = struct.unpack(">BH", plain[place:place + 3])
        body["fields"].append([kind, plain[place + 3:place + 3 + length].hex()])
        place += 3 + length
    assert encode(body) == plain, "the plaintext has another form"
    return body


def lengthened(part):
    return struct.pack(">I", len(part)) + part


def context(head, topic):
    """Returns the bytes that seal and signature cover beside the plaintext, by the version in the header."""
    return head + topic.encode() if head[2] == 1 else lengthened(head) + lengthened(topic.encode())


def message_key(head, nonce, key, topic):
    """Returns the key that seals a message, and the commitment to it, which version 1 does not have."""
    if head[2] == 1:
        return derive(32, head[3], b"IDflkind", key), b""
    key = derive(32, head[3], b"IDflkin2", key)
    both = blake2b(
        b"identity-fleet/2" + context(head, topic) + lengthened(nonce), digest_size=64, key=key, encoder=RawEncoder)
    return both[:32], both[32:]


def signed(head, topic, nonce, commitment, plain):
    if head[2] == 1:
        return b"identity-fleet/1" + context(head, topic) + plain
    return b"identity-fleet/2" + context(head, topic) + b"".join(map(lengthened, (nonce, commitment, plain)))


def seal(kind, epoch, key, topic, body, signing_seed, nonce, version=1):
    head = header(kind, epoch, version)
    plain = encode(body)
    _, secret = sodium.crypto_sign_seed_keypair(signing_seed)
    key, commitment = message_key(head, nonce, key, topic)
    plain += sodium.crypto_sign(signed(head, topic, nonce, commitment, plain), secret)[:64]
    return head + nonce + commitment + sodium.crypto_aead_xchacha20poly1305_ietf_encrypt(
        plain, context(head, topic), nonce, key)


def unseal(message, key, topic):
    assert message[:2] == b"iF" and message[2] in (1, 2)
    kind, epoch = message[3], struct.unpack(">I", message[4:8])[0]
    head, nonce, rest = message[:8], message[8:32], message[32:]
    key, commitment = message_key(head, nonce, key, topic)
    assert rest.startswith(commitment), "the message commits to another key"
    plain = sodium.crypto_aead_xchacha20poly1305_ietf_decrypt(
        rest[len(commitment):], context(head, topic), nonce, key)
    body = decode(plain[:-64])
    signer = bytes.fromhex(dict(body["fields"])[2])
    sodium.crypto_sign_open(plain[-64:] + signed(head, topic, nonce, commitment, plain[:-64]), signer)
    return kind, epoch, body


def texts(field):
    found = []
    while field:
        length = struct.unpack(">H", field[:2])[0]
        found.append(field[2:2 + length].decode())
        field = field[2 + length:]
    return found


def read_box(message, box, secret, topic):
    assert message[:3] == b"iF\x01" and message[4:8] == bytes(4)
    associated = message[:8] + topic.encode()
    content = sodium.crypto_box_seal_open(message[8:], box, secret)
    assert content.startswith(associated), "the message was moved"
    plain = content[len(associated):]
    body = decode(plain[:-64])
    signer = bytes.fromhex(dict(body["fields"])[2])
    sodium.crypto_sign_open(plain[-64:] + b"identity-fleet/1" + associated + plain[:-64], signer)
    return message[3], body


def tell(command, signing_seed):
    public, secret = sodium.crypto_sign_seed_keypair(signing_seed)
    fields = [[2, public.hex()]]
    for token in command["tokens"]:
        fields.append([32, b"".join(struct.pack(">H", len(text.encode())) + text.encode() for text in token).hex()])
    plain = encode({
        "subject": command["device"], "generation": 1, "counter": 1, "run": "00" * 16, "time": 0, "author": "01" * 16,
        "fields": fields,
    })
    associated = header(34, 0) + command["topic"].encode()
    plain += sodium.crypto_sign(b"identity-fleet/1" + associated + plain, secret)[:64]
    return header(34, 0) + sodium.crypto_box_seal(associated + plain, bytes.fromhex(command["to"]))


def read_invitation(message, meeting, key):
    """Opens an invitation, and returns its content in JSON."""
    kind, epoch, body = unseal(message, key, f"identityd/v1/join/{meeting}/i")
    fields = dict(body["fields"])
    assert kind == 16 and epoch == 0 and {1, 2, 20, 21, 22, 25, 26} <= set(fields)
    return {
        "name": bytes.fromhex(fields[1]).decode(), "signer": fields[2], "root": fields[20],
        "epoch": int(fields[21], 16), "key": fields[22], "devices": int(fields[25], 16), "expiry": int(fields[26], 16),
        "removed": re.findall(".{32}", fields.get(29, "")), "fields": [number for number, _ in body["fields"]],
    }


def join(command):
    """Joins with a code: opens the invitation, and answers it."""
    meeting, key = meet(command["code"])
    content = read_invitation(bytes.fromhex(command["message"]), meeting, key)
    own, device = Device(bytes.fromhex(command["seed"])), bytes.fromhex(command["device"])
    topic = f"identityd/v1/join/{meeting}/a"
    fields = [(1, command["name"].encode()), (3, own.box_key)]
    return content | {"topic": topic, "answer": own.write(17, 0, key, topic, device, device, fields).hex()}


def invite(command):
    """Makes the content of a file with an invitation: the meeting, and the message."""
    own, device = Device(bytes.fromhex(command["seed"])), bytes.fromhex(command["device"])
    secret = sodium.randombytes(48)
    fields = [
        (1, command["name"].encode()), (20, bytes.fromhex(command["root"])), (21, struct.pack(">I", command["epoch"])),
        (22, bytes.fromhex(command["key"])), (25, struct.pack(">I", command["devices"])),
        (26, struct.pack(">Q", command["expiry"]))]
    if command["removed"]:
        fields.append((29, bytes.fromhex("".join(command["removed"]))))
    topic = f"identityd/v1/join/{secret[:16].hex()}/i"
    return secret + own.write(16, 0, secret[16:], topic, device, device, fields)


def write_file(content, passphrase):
    if passphrase is None:
        return f"{FILE_HEAD}\n{base64.b64encode(content).decode()}\n"
    salt, nonce = sodium.randombytes(16), sodium.randombytes(24)
    key = stretch(32, unicodedata.normalize("NFC", passphrase).encode(), salt)
    box = base64.b64encode(nonce + sodium.crypto_secretbox(content, nonce, key)).decode()
    return f"{FILE_HEAD}\nidentityd-backup 1 argon2id ops={PASSES} memory={MEMORY} salt={salt.hex()}\n{box}\n"


def read_file(text, passphrase):
    head, *lines = text.removesuffix("\n").split("\n")
    assert head == FILE_HEAD and len(lines) in (1, 2)
    content = base64.b64decode(lines[-1], validate=True)
    if len(lines) == 1:
        return content
    passes, memory, salt = FILE_KEY.fullmatch(lines[0]).groups()
    password = unicodedata.normalize("NFC", passphrase).encode()
    key = stretch(32, password, bytes.fromhex(salt), int(passes), int(memory))
    return sodium.crypto_secretbox_open(content[24:], content[:24], key)


def grant(command, account):
    """Rotates the key, and hands the new one to the device with this record, in the epoch of the record."""
    own, author = Device(bytes.fromhex(command["seed"])), bytes.fromhex(command["author"])
    kind, epoch, body = unseal(bytes.fromhex(command["record"]), account.first_epoch, command["topic"])
    assert kind == 1 and body["author"] == body["subject"]
    number, subject = account.next_epoch(epoch, author), bytes.fromhex(body["subject"])
    box = sodium.crypto_box_seal(bytes.fromhex(command["key"]), bytes.fromhex(dict(body["fields"])[3]))
    fields = [(21, struct.pack(">I", number)), (23, box)]
    if command["removed"]:
        fields.append((29, bytes.fromhex("".join(command["removed"]))))
    topic = account.topic(subject, "k")
    message = own.write(18, epoch, account.first_epoch, topic, subject, author, fields, body["generation"])
    return {"number": number, "topic": topic, "message": message.hex()}


def summarize(command, account):
    """Computes the summary of a roster, and tells it to the others."""
    summary = bytearray(256)
    for topic, message in command["roster"]:
        message = bytes.fromhex(message)
        start = int(topic.split("/")[4], 16) * 16
        # Tombstones do not count.
        if message[3] == 1:
            for place, byte in enumerate(hashlib.sha256(message).digest()[:16]):
                summary[start + place] ^= byte
    own, device = Device(bytes.fromhex(command["seed"])), bytes.fromhex(command["device"])
    topic = f"identityd/v1/{account.id}/h"
    fields = [(35, bytes(summary))]
    message = own.write(5, 1, account.first_epoch, topic, device, device, fields, counter=1)
    return {"summary": summary.hex(), "topic": topic, "message": message.hex()}


def answer(command):
    account = Account(bytes.fromhex(command["root"]))
    if command["do"] == "account":
        device = bytes.fromhex(command["device"])
        passwords = [account.password().hex(), account.password(bytes.fromhex(command["epoch"])).hex()]
        return {"id": account.id, "topic": account.topic(device), "passwords": passwords}
    if command["do"] == "seal":
        body, seed = command["body"], derive(32, 1, b"IDfldev1", bytes.fromhex(command["seed"]))
        public, _ = sodium.crypto_sign_seed_keypair(seed)
        box, _ = sodium.crypto_box_seed_keypair(derive(32, 2, b"IDfldev1", bytes.fromhex(command["seed"])))
        for field in body["fields"]:
            field[1] = {"signing": public.hex(), "box": box.hex()}.get(field[1], field[1])
        topic = account.topic(bytes.fromhex(body["subject"]))
        nonce = bytes.fromhex(command["nonce"]) if "nonce" in command else sodium.randombytes(24)
        message = seal(
            command["kind"], 1, account.first_epoch, topic, body, seed, nonce, command.get("version", 1))
        return {"message": message.hex(), "topic": topic, "sha256": hashlib.sha256(message).hexdigest()}
    if command["do"] == "open":
        kind, epoch, body = unseal(bytes.fromhex(command["message"]), account.first_epoch, command["topic"])
        return {"kind": kind, "epoch": epoch, "body": body}
    if command["do"] == "code":
        meeting, key = meet(command["code"])
        return {"rendezvous": meeting, "key": key.hex()}
    if command["do"] in ("box", "unbox"):
        box, secret = sodium.crypto_box_seed_keypair(derive(32, 2, b"IDfldev1", bytes.fromhex(command["seed"])))
        if command["do"] == "box":
            return {"box": sodium.crypto_box_seal(bytes.fromhex(command["key"]), box).hex()}
        kind, _, body = unseal(bytes.fromhex(command["message"]), account.first_epoch, command["topic"])
        assert kind == 18
        fields = dict(body["fields"])
        key = sodium.crypto_box_seal_open(bytes.fromhex(fields[23]), box, secret)
        return {"epoch": int(fields[21], 16), "key": key.hex()}
    if command["do"] in ("read", "tell"):
        seed = bytes.fromhex(command["seed"])
        box, secret = sodium.crypto_box_seed_keypair(derive(32, 2, b"IDfldev1", seed))
        if command["do"] == "tell":
            return {"message": tell(command, derive(32, 1, b"IDfldev1", seed)).hex()}
        kind, body = read_box(bytes.fromhex(command["message"]), box, secret, command["topic"])
        tokens = [texts(bytes.fromhex(value)) for field, value in body["fields"] if field == 31]
        return {"kind": kind, "reader": blake2b(box, digest_size=16, encoder=RawEncoder).hex(), "tokens": tokens}
    if command["do"] == "invitation":
        whole = read_file(command["file"], command.get("passphrase"))
        return read_invitation(whole[48:], whole[:16].hex(), whole[16:48])
    if command["do"] == "invite":
        return {"file": write_file(invite(command), command.get("passphrase"))}
    if command["do"] == "join":
        return join(command)
    if command["do"] == "grant":
        return grant(command, account)
    if command["do"] == "summarize":
        return summarize(command, account)
    raise ValueError(command["do"])


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
