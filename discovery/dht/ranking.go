package dht

// ranking orders keys by a count that changes by one at a time, in constant time. The zero
// value is empty.
type ranking[K comparable] struct {
	by   []map[K]bool // by count
	most int
}

// set changes the count of a key by one. A count of 0 removes it.
func (r *ranking[K]) set(who K, was, is int) {
	if was > 0 {
		delete(r.by[was], who)
	}
	for len(r.by) <= is {
		r.by = append(r.by, nil)
	}
	if is > 0 {
		if r.by[is] == nil {
			r.by[is] = make(map[K]bool)
		}
		r.by[is][who] = true
	}
	if is > r.most {
		r.most = is
	}
	if len(r.by[r.most]) == 0 {
		r.most = is
	}
}

// top returns a key with the highest count, the zero value if there is none.
func (r *ranking[K]) top() (who K) {
	if r.most > 0 {
		for who = range r.by[r.most] {
			break
		}
	}
	return who
}
