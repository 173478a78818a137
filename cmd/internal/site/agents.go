package site

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"agentsite/node/access"
	"agentsite/node/identity"
)

// Assistant is the agent by whose key connect speaks, where no other is named, and
// AssistantMay what an owner mostly allows it: to read everything, and to move within the
// site's own limits. It can approve nothing.
const (
	Assistant    = "assistant"
	AssistantMay = "read *, set *, show *, capture *, stop"
)

// UsersAgent is one of the user's agents.
type UsersAgent struct {
	Name  string      `json:"name"`
	DID   string      `json:"did"`
	Sites []KnownSite `json:"sites"`
}

// Agents lists the user's agents.
func Agents() (all []UsersAgent, err error) {
	user, err := User()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(filepath.Dir(string(user.Folder)), agentsFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		p, err := As(e.Name())
		if err != nil {
			continue // somebody else's file
		}
		key, err := readKey(p.path(keyName))
		if err != nil {
			return nil, err
		}
		known, err := p.Sites()
		if err != nil {
			return nil, err
		}
		all = append(all, UsersAgent{e.Name(), key.ID().String(), known})
	}
	return all, nil
}

// Allow permits one of the user's agents something on a site that the user knows, and
// has the agent know it. The agent is made where there is none. tell has the site keep a
// grant that the user signed as an owner; where the user was granted what is passed on,
// the agent shows it by itself.
func (p Person) Allow(agent string, k KnownSite, words string, until time.Time, tell func(Signed) error) error {
	a, err := p.agent(agent)
	if err != nil {
		return err
	}
	key, err := a.key()
	if err != nil {
		return err
	}
	pass, err := p.pass(k, key.ID(), words, until)
	if err != nil {
		return err
	}
	if k.Owner {
		if err := tell(Signed{pass.Grant.Bytes()}); err != nil {
			return err
		}
	}
	_, err = a.Accept(pass.String(), k.Name)
	return err
}

// pass is a permission on a known site for a key: a grant of an owner, or a part of what
// the person was granted.
func (p Person) pass(k KnownSite, to identity.ID, words string, until time.Time) (access.Pass, error) {
	id, err := identity.Parse(k.DID)
	if err != nil {
		return access.Pass{}, err
	}
	b, err := block(to, id, words, until)
	if err != nil {
		return access.Pass{}, err
	}
	key, err := p.key()
	if err != nil {
		return access.Pass{}, err
	}
	var g *access.Grant
	if k.Owner {
		g, err = access.Issue(key, b)
	} else {
		var held *access.Grant
		if held, err = access.Open(k.Grant); err == nil {
			g, err = held.Delegate(key, b)
		}
	}
	if err != nil {
		return access.Pass{}, Mistake{fmt.Errorf("on %s: %w", k.Name, err)}
	}
	return access.Pass{Site: id, Name: k.Name, Addresses: k.Addresses, Grant: g}, nil
}
