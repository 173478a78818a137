// Package gossip is a medium in which the sites of a realm announce themselves and changes of
// their records. It carries no records: a site that receives an announcement fetches the
// record from its origin.
//
// It is gossipsub, under a protocol name of its own, over direct connections only. Members of
// a realm often share nothing but relays, so these forward topics (Forward) whose realm they
// do not know. A realm's topic is a hash that only members can compute, and each message has
// a MAC with the realm's secret. A peer of a relay still sees that some peers share a topic.
//
// This package does not know what a record contains, or how it is fetched.
package gossip
