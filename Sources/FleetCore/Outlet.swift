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
  /// How often the topic was looked at since the offer ended; nil while it has not.
  var closing: Int?
}

/// The offers of this device to readers outside of the account. Nothing of it is stored: each run tells it anew.
package struct Outlets: Sendable {
  /// The greatest number of readers: a site, and senders.
  package static let most = 9

  var all: [MessageTopic: Outlet] = [:]
  var postings = Postings<OfferPlace>()
}

extension Member {
  /// Takes the present content for a reader. Only a change is published.
  mutating func offer(_ offer: Offer, isLive: Bool, _ actions: inout [Action]) {
    let former = outlets.all[offer.topic]
    var outlet = former ?? Outlet(offer: offer)
    if former == nil || outlet.closing != nil {
      // Offers that ended have room beside the others, until they are gone.
      guard outlets.all.values.count(where: { $0.closing == nil }) < Outlets.most,
        former != nil || outlets.all.count < 2 * Outlets.most
      else { return actions.append(.notOffered(offer.topic)) }
      if isLive { hearFeedback(of: offer, &actions) }
    } else if outlet.offer == offer {
      return
    }
    outlet.closing = nil
    outlet.offer = offer
    outlet.isDue = true
    outlets.all[offer.topic] = outlet
    writeOffer(offer.topic, isLive: isLive, &actions)
  }

  /// Ends an offer to a reader, whose topic is emptied, and looked at several times, as that of an invitation.
  mutating func withdraw(_ topic: MessageTopic, isLive: Bool, _ actions: inout [Action]) {
    guard outlets.all[topic].map({ $0.closing == nil }) ?? false else { return }
    outlets.all[topic]?.closing = 0
    outlets.all[topic]?.message = nil
    outlets.postings.settle(OfferPlace(topic: topic), &actions)
    actions.append(.cancel(.offerRefresh(topic)))
    if isLive { close(topic, &actions) }
  }

  private mutating func close(_ topic: MessageTopic, _ actions: inout [Action]) {
    outlets.all[topic]?.closing = 0
    actions += [.clear(topic), .wake(.offer(topic), after: Pace.readBack(0))]
  }

  private mutating func proceedClosing(_ topic: MessageTopic, after attempt: Int, _ actions: inout [Action]) {
    // A message that is being written must not count as that of a later offer.
    guard attempt < Pace.readBacks.count || outlets.all[topic]?.isWriting == true else {
      outlets.all[topic] = nil
      return actions.append(.cancel(.offerRest(topic)))
    }
    outlets.all[topic]?.closing = attempt + 1
    actions += [.subscribe(.only(topic)), .wake(.offer(topic), after: Pace.readBack(attempt + 1))]
  }

  /// Empties the topics of all offers, because the membership has ended.
  func clearOffers(_ actions: inout [Action]) {
    actions += outlets.all.keys.sorted { $0.text < $1.text }.map { .clear($0) }
  }

  /// Ends all offers: the device has another identifier, or leaves. The service offers anew what is left.
  mutating func withdrawAll(isLive: Bool, _ actions: inout [Action]) {
    for topic in outlets.all.keys.sorted(by: { $0.text < $1.text }) { withdraw(topic, isLive: isLive, &actions) }
  }

  /// Publishes what the broker may not have, and listens to the senders.
  mutating func openOutlets(_ actions: inout [Action]) {
    for topic in outlets.all.keys.sorted(by: { $0.text < $1.text }) {
      guard let outlet = outlets.all[topic] else { continue }
      if outlet.closing != nil {
        close(topic, &actions)
        continue
      }
      hearFeedback(of: outlet.offer, &actions)
      if outlet.isDue {
        writeOffer(topic, isLive: true, &actions)
      } else {
        outlets.postings.schedule(OfferPlace(topic: topic), attempt: 0, after: Pace.ownPutBack, &actions)
      }
    }
  }

  private func hearFeedback(of offer: Offer, _ actions: inout [Action]) {
    if case .tokens(let sender, let tag) = offer.topic { actions.append(.subscribe(.only(.feedback(sender, tag)))) }
  }

  private mutating func writeOffer(_ topic: MessageTopic, isLive: Bool, _ actions: inout [Action]) {
    guard isLive, !hasLeft, var outlet = outlets.all[topic], outlet.closing == nil, outlet.isDue, !outlet.isWriting,
      !outlet.isResting
    else { return }
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
    guard outlet.closing == nil else { return outlets.all[topic] = outlet }
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
    let place = OfferPlace(topic: topic)
    guard let message = outlets.all[topic]?.message else { return }
    guard allowances.use([.putBack, .hourlyPutBack], &actions) else {
      return outlets.postings.isSettled(place)
        ? outlets.postings.schedule(place, attempt: 0, after: Pace.retriedPutBack, &actions)
        : outlets.postings.postpone(place, &actions)
    }
    actions.append(.publish(topic, message))
    outlets.postings.published(place, &actions)
  }

  /// Takes the next step of getting a message to its reader.
  mutating func proceedOffer(_ topic: MessageTopic, isLive: Bool, _ actions: inout [Action]) {
    if let attempt = outlets.all[topic]?.closing {
      if isLive { proceedClosing(topic, after: attempt, &actions) }
      return
    }
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
    guard let outlet = outlets.all[topic] else { return }
    if outlet.closing != nil {
      if case .nothing = shown { return }
      return actions.append(.clear(topic))
    }
    guard let message = outlet.message else { return }
    let place = OfferPlace(topic: topic)
    switch shown {
    case .message(message): outlets.postings.sawKnown(place, isRetained: isRetained, &actions)
    // The twin tells the same readers, and the two would replace each other's messages without end.
    case .message where twins.mark != nil, .rejected where twins.mark != nil: outlets.postings.settle(place, &actions)
    case .nothing, .message, .rejected:
      outlets.postings.sawInferior(place, isRetained: isRetained, isOwn: true, &actions)
    }
  }

  /// Takes a sender's findings about the tokens of this device. Only the device changes its tokens.
  mutating func heardFeedback(
    from sender: ReaderID, at tag: DeviceTag, _ message: SignedMessage, _ actions: inout [Action]
  ) {
    guard tag == membership.tag, message.body.subject == membership.device,
      let outlet = outlets.all[.tokens(sender, tag)], outlet.offer.signingKey == message.signer
    else { return actions.append(.dropped(.author)) }
    // The findings are about one message, whose counter they have. After a later one, the sender tells them again, and a
    // broker that shows old ones cannot end a token that is valid by now.
    let isPresent = message.body.counter == outlet.message?.body.counter
    let present = outlet.offer.content.tokens(.token) ?? []
    for token in message.body.fields.tokens(.invalidToken) ?? [] where isPresent && present.contains(token) {
      actions.append(.invalidate(token))
    }
    actions.append(.clear(.feedback(sender, tag)))
  }
}
