package peer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/owner"
	ownerclient "agentsite/transport/owner/client"

	"github.com/go-json-experiment/json"
)

// Assistant is the agent by whose key connect speaks, where no other is named, and
// AssistantMay what an owner mostly allows it: to read everything, and to move within the
// site's own limits. It can approve nothing.
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
		p, err := As(e.Name())
		if err != nil {
			continue // somebody else's file
		}
		key, err := p.ReadKey()
		if err != nil {
			return nil, err
		}
		known, err := p.Sites()
		if err != nil {
			return nil, err
		}
		all = append(all, Agent{e.Name(), key.ID().String(), known})
	}
	return all, nil
}

// Standing is what an agent may do on all sites of the user's, those too that are claimed
// later.
type Standing struct {
	Agent string    `json:"-"`
	May   string    `json:"may"`
	Until time.Time `json:"until,omitzero"`
}

const standingName = "everywhere.json"

// Stand remembers what an agent may do everywhere, in the place of what it was before.
func (p Person) Stand(s Standing) error {
	a, err := p.agent(s.Agent)
	if err != nil {
		return err
	}
	return a.exclusive(changePatience, func() error { return a.write(standingName, s) })
}

// Standings lists what agents may do everywhere and has not ended.
func (p Person) Standings() (all []Standing, err error) {
	agents, err := Agents()
	if err != nil {
		return nil, err
	}
	for _, agent := range agents {
		a, err := p.agent(agent.Name)
		if err != nil {
			return nil, err
		}
		s := Standing{Agent: agent.Name}
		text, err := os.ReadFile(a.Path(standingName))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = json.Unmarshal(text, &s)
		}
		if err != nil {
			return nil, fmt.Errorf("%s cannot be read: %w; remove it, and run agentsite agents allow again", a.Path(standingName), err)
		}
		if s.Until.IsZero() || s.Until.After(time.Now()) {
			all = append(all, s)
		}
	}
	return all, nil
}

// Allow permits one of the user's agents something on a site that the user knows, and
// has the agent know it. The agent is made where there is none. tell has the site keep a
// grant that the user signed as an owner; where the user was granted what is passed on,
// the agent shows it by itself.
func (p Person) Allow(agent string, k Contact, words string, until time.Time, tell func(owner.Signed) error) error {
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
		if err := tell(owner.Signed{Grant: pass.Grant.Bytes()}); err != nil {
			return err
		}
	}
	_, err = a.accept(pass, k.Name, func(Contact) error { return nil })
	return err
}

// Delegate passes a part of what the person was granted on a site on to another key, and
// returns the text for its holder. It asks nobody.
func (p Person) Delegate(name, audience, words string, until time.Time) (string, error) {
	k, err := p.Known(name)
	if err != nil {
		return "", err
	}
	if k.Owner {
		return "", state.Mistakef("you own %s: agentsite grant --site %[1]s", name)
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

// pass is a permission on a known site for a key: a grant of an owner, or a part of what
// the person was granted.
func (p Person) pass(k Contact, to identity.ID, words string, until time.Time) (access.GrantLink, error) {
	id, err := identity.Parse(k.DID)
	if err != nil {
		return access.GrantLink{}, err
	}
	b, err := ownerclient.NewBlock(to, id, words, until)
	if err != nil {
		return access.GrantLink{}, err
	}
	key, err := p.key()
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
