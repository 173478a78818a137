package peer

import (
	"slices"
	"time"
)

// KeyGrant is the permission that the user gives a key on all sites that they own, also on those claimed later.
type KeyGrant struct {
	To    string    `json:"to"` // its did:key
	Name  string    `json:"name,omitzero"`
	May   string    `json:"may"`
	Until time.Time `json:"until,omitzero"`
}

const keyGrantsName = "grants-everywhere.json"

// KeyGrants are such permissions, at most one for each key.
type KeyGrants struct{ listFile[KeyGrant] }

// KeyGrants returns those of the user.
func (p Person) KeyGrants() KeyGrants { return KeyGrants{listFile[KeyGrant]{p.Folder, keyGrantsName}} }

// Valid lists those that have not ended.
func (g KeyGrants) Valid() ([]KeyGrant, error) {
	all, err := g.List()
	return slices.DeleteFunc(all, func(k KeyGrant) bool { return !k.Until.IsZero() && !k.Until.After(time.Now()) }), err
}

// Set stores a permission in place of that of the same key.
func (g KeyGrants) Set(k KeyGrant) error {
	return g.change(lockTimeout, func(all []KeyGrant) ([]KeyGrant, error) {
		return append(slices.DeleteFunc(all, func(o KeyGrant) bool { return o.To == k.To }), k), nil
	})
}

// Remove removes the permission of a key, for sites that are claimed later.
func (g KeyGrants) Remove(to string) error {
	return g.change(lockTimeout, func(all []KeyGrant) ([]KeyGrant, error) {
		if !slices.ContainsFunc(all, func(o KeyGrant) bool { return o.To == to }) {
			return nil, nil
		}
		return slices.DeleteFunc(all, func(o KeyGrant) bool { return o.To == to }), nil
	})
}
