package dht

// ranking knows which of some has the most, where numbers change by one at a time. The zero
// value has nobody. Whatever is done takes the same time.
type ranking[K comparable] struct {
	by   []map[K]bool // by number
	most int
}

// set notes that one has another number now, one more or less than before. Who has nothing
// is forgotten.
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

// top is one of those that have the most, the zero value where nobody has anything.
func (r *ranking[K]) top() (who K) {
	if r.most > 0 {
		for who = range r.by[r.most] {
			break
		}
	}
	return who
}
