package gossip

import "github.com/hashicorp/golang-lru/v2/simplelru"

// lru holds a value for each of a bounded number of keys, and evicts the least recently used.
type lru[K comparable, V any] struct{ *simplelru.LRU[K, *V] }

// newLRU panics unless size is positive.
func newLRU[K comparable, V any](size int) lru[K, V] {
	l, err := simplelru.NewLRU[K, *V](size, nil)
	if err != nil {
		panic(err)
	}
	return lru[K, V]{l}
}

// get returns the value of a key, a new one for a new key.
func (l lru[K, V]) get(k K) *V {
	v, ok := l.Get(k)
	if !ok {
		v = new(V)
		l.Add(k, v)
	}
	return v
}

// find returns the value of a key without using it, nil for an unknown key.
func (l lru[K, V]) find(k K) *V {
	v, _ := l.Peek(k)
	return v
}
