package import FleetWire

/// Something that a device tells one reader outside of the account: its report for a site, or its tokens for a sender.
package struct Offer: Equatable, Sendable {
  /// The topic, which names the kind and the reader.
  package let topic: MessageTopic
  /// The X25519 key of the reader.
  package let boxKey: PublicKey
  /// The Ed25519 key of the reader, whose feedback is believed.
  package let signingKey: PublicKey
  /// The content, without the keys of the device.
  package let content: Fields

  /// Creates an offer.
  package init(topic: MessageTopic, boxKey: PublicKey, signingKey: PublicKey, content: Fields) {
    self.topic = topic
    self.boxKey = boxKey
    self.signingKey = signingKey
    self.content = content
  }
}

/// The topic of an offer.
struct OfferPlace: PostingPlace {
  /// The topic.
  let topic: MessageTopic

  var deadline: Deadline { .offer(topic) }

  static func < (left: Self, right: Self) -> Bool { left.topic.text < right.topic.text }
}

/// The progress of an offer.
struct Outlet: Sendable {
  /// The present content, and its reader.
  var offer: Offer
  /// The message at the broker, or on its way there.
  var message: SignedMessage?
  /// Whether the content has changed since the message was written, or there is none.
  var isDue = true
  /// Whether a message is being written.
  var isWriting = false
  /// Whether a pause after the last message is not over.
  var isResting = false
}

/// What this device tells readers outside of the account. Nothing of it is stored: each run tells it anew.
struct Outlets: Sendable {
  /// The greatest number of readers: a site, and senders.
  static let most = 9

  var all: [MessageTopic: Outlet] = [:]
  var postings = Postings<OfferPlace>()
}

extension Member {
  /// Takes the present content for a reader. Only a change is published.
  mutating func offer(_ offer: Offer, isLive: Bool, _ actions: inout [Action]) {
    guard var outlet = outlets.all[offer.topic] else {
      guard outlets.all.count < Outlets.most else { return actions.append(.notOffered(offer.topic)) }
      outlets.all[offer.topic] = Outlet(offer: offer)
      if isLive { hearFeedback(of: offer, &actions) }
      return writeOffer(offer.topic, isLive: isLive, &actions)
    }
    guard outlet.offer != offer else { return }
    outlet.offer = offer
    outlet.isDue = true
    outlets.all[offer.topic] = outlet
    writeOffer(offer.topic, isLive: isLive, &actions)
  }

  /// Ends an offer to a reader, whose topic is emptied.
  mutating func withdraw(_ topic: MessageTopic, isLive: Bool, _ actions: inout [Action]) {
    guard outlets.all.removeValue(forKey: topic) != nil else { return }
    outlets.postings.settle(OfferPlace(topic: topic), &actions)
    actions += [.cancel(.offerRest(topic)), .cancel(.offerRefresh(topic))]
    if isLive { actions.append(.clear(topic)) }
  }

  /// Ends all offers: the device has another identifier, or leaves. The service offers anew what is left.
  mutating func withdrawAll(isLive: Bool, _ actions: inout [Action]) {
    for topic in outlets.all.keys.sorted(by: { $0.text < $1.text }) { withdraw(topic, isLive: isLive, &actions) }
  }

  /// Publishes what the broker may not have, and listens to the senders.
  mutating func openOutlets(_ actions: inout [Action]) {
    for topic in outlets.all.keys.sorted(by: { $0.text < $1.text }) {
      guard let outlet = outlets.all[topic] else { continue }
      hearFeedback(of: outlet.offer, &actions)
      if outlet.isDue {
        writeOffer(topic, isLive: true, &actions)
      } else {
        outlets.postings.schedule(OfferPlace(topic: topic), attempt: 0, after: Pace.ownPutBack, &actions)
      }
    }
  }

  private func hearFeedback(of offer: Offer, _ actions: inout [Action]) {
    if case .tokens = offer.topic { actions.append(.subscribe(.only(.feedback(membership.tag)))) }
  }

  private mutating func writeOffer(_ topic: MessageTopic, isLive: Bool, _ actions: inout [Action]) {
    guard isLive, !hasLeft, var outlet = outlets.all[topic], outlet.isDue, !outlet.isWriting, !outlet.isResting else {
      return
    }
    outlet.isDue = false
    outlet.isWriting = true
    outlets.all[topic] = outlet
    var fields = outlet.offer.content
    fields[.signingKey] = membership.description.signingKey.bytes
    let kind: MessageKind
    if case .report = topic {
      kind = .report
    } else {
      kind = .tokens
      fields[.boxKey] = membership.description.boxKey.bytes
    }
    actions.append(
      .box(
        Draft(
          kind: kind, subject: membership.device, tag: membership.tag, generation: membership.generation,
          counter: .next(above: 0), epoch: 0, fields: fields), on: topic, to: outlet.offer.boxKey))
  }

  /// Takes a message for a reader, which has been signed and sealed; nil if that was not possible.
  mutating func boxed(
    _ topic: MessageTopic, _ message: SignedMessage?, isLive: Bool, _ actions: inout [Action]
  ) {
    guard var outlet = outlets.all[topic], outlet.isWriting else { return }
    outlet.isWriting = false
    outlet.isResting = true
    var rest = Pace.retriedChange
    if let message {
      outlet.message = message
      if case .report = topic { rest = Pace.reportRest } else { rest = Pace.tokensRest }
    } else {
      outlet.isDue = true
    }
    outlets.all[topic] = outlet
    actions.append(.wake(.offerRest(topic), after: rest))
    guard message != nil else { return }
    actions.append(.wake(.offerRefresh(topic), after: Pace.about(Pace.offerRefresh, percent: 10)))
    if isLive { publishOffer(topic, &actions) }
  }

  private mutating func publishOffer(_ topic: MessageTopic, _ actions: inout [Action]) {
    guard let message = outlets.all[topic]?.message else { return }
    actions.append(.publish(topic, message))
    outlets.postings.published(OfferPlace(topic: topic), &actions)
  }

  /// Takes the next step of getting a message to its reader.
  mutating func proceedOffer(_ topic: MessageTopic, isLive: Bool, _ actions: inout [Action]) {
    guard isLive else { return outlets.postings.postpone(OfferPlace(topic: topic), &actions) }
    switch outlets.postings.woke(OfferPlace(topic: topic), &actions) {
    case .wait: break
    case .ask: actions.append(.subscribe(.only(topic)))
    case .publish: publishOffer(topic, &actions)
    }
  }

  /// Ends the pause after a message.
  mutating func endOfferRest(_ topic: MessageTopic, isLive: Bool, _ actions: inout [Action]) {
    outlets.all[topic]?.isResting = false
    writeOffer(topic, isLive: isLive, &actions)
  }

  /// Writes a message again without a change, so that its reader sees that the device is alive.
  mutating func refreshOffer(_ topic: MessageTopic, isLive: Bool, _ actions: inout [Action]) {
    outlets.all[topic]?.isDue = true
    writeOffer(topic, isLive: isLive, &actions)
  }

  /// Takes what the broker shows on the topic of an offer.
  mutating func heardOffer(_ topic: MessageTopic, _ shown: Shown, isRetained: Bool, _ actions: inout [Action]) {
    guard let message = outlets.all[topic]?.message else { return }
    if case .message(message) = shown {
      outlets.postings.sawKnown(OfferPlace(topic: topic), isRetained: isRetained, &actions)
    } else {
      outlets.postings.sawInferior(OfferPlace(topic: topic), isRetained: isRetained, isOwn: true, &actions)
    }
  }

  /// Takes a sender's word about the tokens of this device. Only the device changes its tokens.
  mutating func heardFeedback(_ topic: MessageTopic, _ message: SignedMessage, _ actions: inout [Action]) {
    let senders = outlets.all.values.filter { outlet in
      if case .tokens = outlet.offer.topic { outlet.offer.signingKey == message.signer } else { false }
    }
    guard topic == .feedback(membership.tag), message.body.subject == membership.device, let sender = senders.first
    else { return actions.append(.dropped(.author)) }
    // A sender knows only the tokens that it was told, and may have learned late that one is invalid.
    let present = sender.offer.content.tokens(.token) ?? []
    for token in message.body.fields.tokens(.invalidToken) ?? [] where present.contains(token) {
      actions.append(.invalidate(token))
    }
    actions.append(.clear(topic))
  }
}
