package peer

import (
	"slices"

	"agentsite/discovery"
	"agentsite/node/state"
	"agentsite/transport/p2p"
)

// Realm is a realm that a person is in, with its relays.
type Realm struct {
	Realm  string   `json:"realm"` // with its secret
	Relays []string `json:"relays,omitzero"`
	IPFS   bool     `json:"ipfs,omitzero"` // whether the public DHT of IPFS is asked, too
}

// Name returns the realm's name, without its secret.
func (j Realm) Name() string {
	r, _ := discovery.ParseRealm(j.Realm)
	return r.Name
}

const realmsName = "realms.json"

// Realms are the realms that a person is in.
type Realms struct{ listFile[Realm] }

// Get returns the realm of that name; "" is for the only one.
func (r Realms) Get(name string) (Realm, error) {
	all, err := r.List()
	if err != nil {
		return Realm{}, err
	}
	return realmNamed(all, name)
}

func realmNamed(all []Realm, name string) (Realm, error) {
	if name == "" && len(all) == 1 {
		return all[0], nil
	}
	i := slices.IndexFunc(all, func(j Realm) bool { return j.Name() == name })
	switch {
	case i >= 0:
		return all[i], nil
	case name == "" && len(all) > 1:
		return Realm{}, state.Mistakef("you are in several realms: choose one with --realm; agentsite realm list shows them")
	case name == "":
		return Realm{}, state.Mistakef("you are in no realm: agentsite realm join adds the one that your sites are in")
	}
	return Realm{}, state.Mistakef("you are in no realm %q: agentsite realm join adds it, with its secret", name)
}

// Checked returns the realm with each relay's addresses for QUIC and for TCP, or an error for a text that is no realm
// or no relay.
func (j Realm) Checked() (Realm, error) {
	_, err := discovery.ParseRealm(j.Realm)
	if err == nil {
		j.Relays, err = p2p.WithBothTransports(j.Relays)
	}
	if err != nil {
		return j, state.Mistake{Err: err}
	}
	return j, nil
}

// Join stores a realm, or the new relays of one, and returns it as Checked does. It never replaces another realm of
// the same name, whose secret may be nowhere else.
func (r Realms) Join(j Realm) (Realm, error) {
	j, err := j.Checked()
	if err != nil {
		return j, err
	}
	return j, r.change(lockTimeout, func(all []Realm) ([]Realm, error) {
		i := slices.IndexFunc(all, func(k Realm) bool { return k.Name() == j.Name() })
		switch {
		case i < 0:
			return append(all, j), nil
		case all[i].Realm == j.Realm:
			all[i] = j
			return all, nil
		}
		return nil, state.Mistakef("you are in another realm %s with another secret: "+
			"agentsite realm list --secrets shows it, and agentsite realm leave %[1]s removes it", j.Name())
	})
}

// Leave removes the realm of that name.
func (r Realms) Leave(name string) error {
	return r.change(lockTimeout, func(all []Realm) ([]Realm, error) {
		if _, err := realmNamed(all, name); err != nil {
			return nil, err
		}
		return slices.DeleteFunc(all, func(k Realm) bool { return k.Name() == name }), nil
	})
}
