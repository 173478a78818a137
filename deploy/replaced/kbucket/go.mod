module github.com/libp2p/go-libp2p-kbucket

go 1.26.0

require (
	github.com/libp2p/go-libp2p v0.51.0
	github.com/libp2p/go-libp2p-kbucket/upstream v0.9.0
)
