// Package memnet has hosts of libp2p whose network is in memory: latency, loss, routers, relays and power cuts,
// and no sockets, packets or encryption. Ten thousand hosts came up in one process and one bubble of
// testing/synctest. Tests use it to run the real DHT, gossip and card protocols with many sites.
//
// Opening a connection takes its round trips, and a message the delay of its path. The bytes that protocols write to
// streams are counted.
// It does not model bandwidth, packets, hole punching, connection limits, or the reservation protocol of relays: a
// host behind a router is reached through the relays that it is connected to.
package memnet
