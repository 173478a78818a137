// Package gossip is a medium in which the sites of a realm tell each other that they are
// there, and whether something about them is new. Records do not travel on it: who hears
// news asks the site itself.
package gossip

import _ "github.com/libp2p/go-libp2p-pubsub"
