// Package keyspace has the functions of the upstream's that its parent uses.
package keyspace

import "github.com/libp2p/go-libp2p-kbucket/upstream/keyspace"

func Xor(a, b []byte) []byte      { return keyspace.Xor(a, b) }
func ZeroPrefixLen(id []byte) int { return keyspace.ZeroPrefixLen(id) }
