package peer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"agentsite/node/access"
	"agentsite/node/acts"
	"agentsite/node/identity"
	"agentsite/node/state"
	ownerclient "agentsite/transport/owner/client"
)

// Assistant is the agent that connect presents where none is named. AssistantMay is its usual
// permission: to read everything and to move outputs within the site's limits. It can approve
// nothing.
const (
	Assistant    = "assistant"
	AssistantMay = "read *, set *, show *, capture *, stop"
)

// Agent is one of the user's agents, with its contacts.
type Agent struct {
	Name  string    `json:"name"`
	DID   string    `json:"did"`
	Sites []Contact `json:"sites"`
}

// Agents lists the user's agents.
func Agents() (all []Agent, err error) {
	user, err := User()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(filepath.Dir(string(user.Folder)), agentsFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		p, err := PersonNamed(e.Name())
		if err != nil {
			continue // not an agent's folder
		}
		key, err := p.Folder.ReadKey()
		if err != nil {
			return nil, err
		}
		contacts, err := p.Contacts().List()
		if err != nil {
			return nil, err
		}
		all = append(all, Agent{e.Name(), key.ID().String(), contacts})
	}
	return all, nil
}

// GlobalPermission is an agent's permission on all of the user's sites, also on those claimed
// later.
type GlobalPermission struct {
	Agent string    `json:"-"`
	May   string    `json:"may"`
	Until time.Time `json:"until,omitzero"`
}

const globalName = "everywhere.json"

// SetGlobalPermission replaces an agent's permission on all sites.
func (p Person) SetGlobalPermission(g GlobalPermission) error {
	a, err := p.agent(g.Agent)
	if err != nil {
		return err
	}
	return withLock(a.Folder, lockTimeout, func() error { return writeJSON(a.Folder, globalName, g) })
}

// RemoveGlobalPermission removes an agent's permission on all sites, for those that are claimed later.
func (p Person) RemoveGlobalPermission(agent string) error {
	a, err := p.agent(agent)
	if err != nil {
		return err
	}
	return withLock(a.Folder, lockTimeout, func() error {
		err := os.Remove(a.Folder.Path(globalName))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// GlobalPermissions lists the permissions of the user's agents on all sites, without those that
// have ended.
func (p Person) GlobalPermissions() (all []GlobalPermission, err error) {
	agents, err := Agents()
	if err != nil {
		return nil, err
	}
	for _, agent := range agents {
		a, err := p.agent(agent.Name)
		if err != nil {
			return nil, err
		}
		g := GlobalPermission{Agent: agent.Name}
		err = readJSON(a.Folder, globalName, &g)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s cannot be read: %w; remove it, and run agentsite agents allow again", a.Folder.Path(globalName), err)
		}
		if g.Until.IsZero() || g.Until.After(time.Now()) {
			all = append(all, g)
		}
	}
	return all, nil
}

// Allow grants a permission on a contact of the user's to one of the user's agents, and adds the
// site to the agent's contacts. It creates the agent if there is none. deposit sends a grant that
// the user signed as an owner to the site, where it replaces what the user gave the agent before. A
// grant that the user delegates is presented by the agent itself, and replaces it then.
func (p Person) Allow(agent string, k Contact, words string, until time.Time, deposit func(acts.Signed) error) error {
	a, err := p.agent(agent)
	if err != nil {
		return err
	}
	key, err := a.Key()
	if err != nil {
		return err
	}
	pass, err := p.pass(k, key.ID(), words, until)
	if err != nil {
		return err
	}
	if k.Owner {
		if err := deposit(acts.Signed{Grant: pass.Grant.Bytes(), Replace: true}); err != nil {
			return err
		}
	}
	_, err = a.accept(pass, k.Name, func(Contact) error { return nil })
	return err
}

// Delegate grants a part of the person's permission on a contact to another key, and returns
// the text for its holder. It needs no connection.
func (p Person) Delegate(name, audience, words string, until time.Time) (string, error) {
	k, err := p.Contacts().Get(name)
	if err != nil {
		return "", err
	}
	if k.Owner {
		return "", state.Mistakef("you own %s: use agentsite grant --site %[1]s", name)
	}
	to, err := identity.Parse(audience)
	if err != nil {
		return "", state.Mistake{Err: err}
	}
	pass, err := p.pass(k, to, words, until)
	if err != nil {
		return "", err
	}
	return pass.String(), nil
}

// pass signs a permission on a contact for a key: an owner's grant, or a delegation of the
// person's own.
func (p Person) pass(k Contact, to identity.ID, words string, until time.Time) (access.GrantLink, error) {
	id, err := identity.Parse(k.DID)
	if err != nil {
		return access.GrantLink{}, err
	}
	b, err := ownerclient.NewBlock(to, id, words, until)
	if err != nil {
		return access.GrantLink{}, err
	}
	key, err := p.Key()
	if err != nil {
		return access.GrantLink{}, err
	}
	var g *access.Grant
	if k.Owner {
		g, err = access.Issue(key, b)
	} else {
		var held *access.Grant
		if held, err = access.ParseGrant(k.Grant); err == nil {
			g, err = held.Delegate(key, b)
		}
	}
	if err != nil {
		return access.GrantLink{}, state.Mistakef("on %s: %w", k.Name, err)
	}
	return access.GrantLink{Site: id, Name: k.Name, Addresses: k.Addresses, Grant: g}, nil
}
