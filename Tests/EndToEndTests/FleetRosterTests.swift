import FleetSeal
import FleetWire
import Foundation
import IdentityCore
import TestSupport
import Testing

/// The records of many devices, which exist as messages at a broker alone.
private struct PlayedDevices {
  private struct Device {
    let uuid: IdentityCore.UUID
    let keys: DeviceKeys
  }

  private let seal: MessageSeal
  private let devices: [Device]

  /// Makes devices in the account of another one.
  init(_ count: Int, in account: FleetUnderTest) throws {
    let item = try account.daemon.ask("item read service=identity-fleet account=root")
    let data = try #require(item.firstMatch(of: /^OK data=(\S+)/)).1
    var root = [UInt8](try #require(Data(base64Encoded: String(data))))
    let keys = try #require(SecretKey(consuming: &root).flatMap { AccountKeys(root: $0) })
    seal = MessageSeal(keys)
    var generator = SeededGenerator(13)
    devices = try (0..<count).map { _ in
      Device(
        uuid: UUID(high: generator.next(), low: generator.next()),
        keys: try #require(SecretKey.random().flatMap { DeviceKeys(seed: $0) }))
    }
  }

  /// Publishes the records of some devices, whose names are a word and their places.
  func publish(_ places: Range<Int>, named word: String, counter: UInt64, to broker: any MessageBroker) throws {
    let folder = try TemporaryFolder()
    let account = seal.account
    for place in places {
      let device = devices[place]
      let description = DeviceDescription(
        name: Text("\(word)\(place)"), signingKey: device.keys.signingKey, boxKey: device.keys.boxKey,
        joined: Timestamp(milliseconds: 1), home: Home(high: 1, low: 1))
      let body = Body(
        subject: device.uuid, generation: 1, counter: counter, run: Run(high: 1, low: 1),
        time: Timestamp(milliseconds: 1), author: device.uuid, fields: description.fields)
      let topic = MessageTopic.device(account.id, account.tag(of: device.uuid))
      let message = try #require(seal.seal(.record, body, epoch: 1, on: topic, by: device.keys))
      try Data(message.bytes).write(to: URL(filePath: folder[topic.text.replacing("/", with: ":")]))
    }
    let script = #"""
      cd "$1" && shift && for topic in *; do
        mosquitto_pub "$@" -q 1 -r -t "${topic//:/\/}" -f "$topic" || exit
      done
      """#
    let result = try run(broker.place + ["bash", "-c", script, "bash", folder.path] + broker.options)
    guard result.status == 0 else { throw Failure("mosquitto_pub: \(result.errors)") }
  }
}

extension FleetClusterTests {
  @Test func `a roster of 520 devices is read whole, by a newcomer and in parts`() throws {
    let cluster = try OneCluster.running()
    let desk = try fleet.fleet(["desk"], at: cluster)[0]
    try fleet.agree([desk], on: ["desk"])
    let others = try PlayedDevices(520, in: desk)
    try others.publish(0..<520, named: "first", counter: 1, to: cluster)
    let laptop = try fleet.device("laptop", at: cluster)
    try fleet.join(laptop, by: desk)
    let names = (0..<520).map { "first\($0)" } + ["desk", "laptop"]
    for device in [desk, laptop] {
      try device.wait("all are listed") { try device.daemon.ask("devices") == "OK 522" }
    }
    // With more than 512 known devices, the next connection reads the roster in sixteen parts.
    desk.end(with: SIGKILL)
    try others.publish(0..<40, named: "second", counter: 2, to: cluster)
    try desk.start()
    try fleet.agree([desk, laptop], on: (0..<40).map { "second\($0)" } + names.dropFirst(40))
  }
}
