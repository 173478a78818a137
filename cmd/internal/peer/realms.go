package peer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"agentsite/discovery"
	"agentsite/node/state"
	"agentsite/transport/p2p"

	"github.com/go-json-experiment/json"
)

// Realm is a realm that a person is in, with its relays.
type Realm struct {
	Realm  string   `json:"realm"` // with its secret
	Relays []string `json:"relays,omitzero"`
	IPFS   bool     `json:"ipfs,omitzero"` // whether the public table of IPFS is asked, too
}

// Name is that of the realm, without its secret.
func (j Realm) Name() string {
	r, _ := discovery.ParseRealm(j.Realm)
	return r.Name
}

const realmsName = "realms.json"

// Realms are those that the person is in.
func (p Person) Realms() (all []Realm, err error) {
	text, err := os.ReadFile(p.Path(realmsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("the realms that you are in cannot be read: %w; mend or remove %s", err, p.Path(realmsName))
	}
	return all, nil
}

// Realm finds one by its name; "" is the only one.
func (p Person) Realm(name string) (Realm, error) {
	all, err := p.Realms()
	if err != nil {
		return Realm{}, err
	}
	return chosen(all, name)
}

func chosen(all []Realm, name string) (Realm, error) {
	if name == "" && len(all) == 1 {
		return all[0], nil
	}
	i := slices.IndexFunc(all, func(j Realm) bool { return j.Name() == name })
	switch {
	case i >= 0:
		return all[i], nil
	case name == "" && len(all) > 1:
		return Realm{}, state.Mistakef("you are in several realms: say with --realm which of them; agentsite realm list shows them")
	case name == "":
		return Realm{}, state.Mistakef("you are in no realm: agentsite realm join takes the one that your sites are in")
	}
	return Realm{}, state.Mistakef("you are in no realm %q: agentsite realm join takes it with its secret", name)
}

// Join remembers a realm, or where its sites meet now. Another of the same name is not
// replaced: its secret may be nowhere else. It returns what it remembers, with each relay's
// addresses for QUIC and for TCP.
func (p Person) Join(j Realm) (Realm, error) {
	r, err := discovery.ParseRealm(j.Realm)
	if err != nil {
		return j, state.Mistake{Err: err}
	}
	if j.Relays, err = p2p.WithBothTransports(j.Relays); err != nil {
		return j, state.Mistake{Err: err}
	}
	return j, p.changeRealms(func(all []Realm) ([]Realm, error) {
		i := slices.IndexFunc(all, func(k Realm) bool { return k.Name() == r.Name })
		switch {
		case i < 0:
			return append(all, j), nil
		case all[i].Realm == j.Realm:
			all[i] = j
			return all, nil
		}
		return nil, state.Mistakef("you are in another realm %s already, with a secret of its own: agentsite realm list --secrets shows it, and agentsite realm leave %[1]s forgets it", r.Name)
	})
}

// Leave forgets a realm.
func (p Person) Leave(name string) error {
	return p.changeRealms(func(all []Realm) ([]Realm, error) {
		if _, err := chosen(all, name); err != nil {
			return nil, err
		}
		return slices.DeleteFunc(all, func(k Realm) bool { return k.Name() == name }), nil
	})
}

func (p Person) changeRealms(change func(all []Realm) ([]Realm, error)) error {
	return p.exclusive(changePatience, func() error {
		all, err := p.Realms()
		if err == nil {
			all, err = change(all)
		}
		if err != nil {
			return err
		}
		return p.write(realmsName, all)
	})
}
