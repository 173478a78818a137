// Package gossip is a medium in which the sites of a realm tell each other that they are
// there, and whether something about them is new. Records do not travel on it: who hears
// news asks the site itself.
//
// It is gossipsub, under a protocol name of its own, over direct connections alone: the
// members of a realm often meet only at relays, so these forward (Forward) what they
// cannot read the names of. A realm's topic is a hash that nobody else can make, and each
// message carries a proof that its origin knows the realm. Who is connected to a relay
// can still see that some peers share a topic, whatever it is.
//
// Nothing may enter here that knows what a record says, or how one is fetched.
package gossip
