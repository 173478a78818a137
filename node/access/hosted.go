package access

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"agentsite/agents"
	"agentsite/agents/principal"
)

// SetHosted replaces the permissions of the agents that the site hosts, by principal. They
// come from the configuration, whose author is the machine's owner: nothing signs them, they do not
// expire, and they cannot be passed on. OnEnd ends leases that depended on a removed or changed
// permission at once. An unchanged rate keeps its count.
func (s *Store) SetHosted(all map[string][]Permission) error {
	hosted := make(map[string][]credential, len(all))
	for id, permissions := range all {
		if principal.Parse(id).Kind != principal.Hosted {
			return fmt.Errorf("%s cannot be an agent's name: it belongs to a token, a key or a local caller", id)
		}
		if len(permissions) > maxEntries {
			return fmt.Errorf("%s: %d permissions are more than %d", id, len(permissions), maxEntries)
		}
		for _, p := range permissions {
			if err := p.check(); err != nil {
				return fmt.Errorf("%s: %w", id, err)
			}
		}
		raw, err := codec.Encode(permissions)
		if err != nil {
			return err
		}
		hash := Hash(sha256.Sum256(append([]byte("hosted "+id+"\n"), raw...)))
		grant := &Grant{Blocks: []Block{{Permissions: permissions}}, ids: []Hash{hash}}
		hosted[id] = []credential{{principal: id, root: id, grant: grant, hosted: true}}
	}
	s.mu.Lock()
	ended := false
	for id, c := range s.hosted {
		ended = ended || !slices.ContainsFunc(hosted[id], c[0].sameHosted)
	}
	s.hosted = hosted
	s.mu.Unlock()
	if ended {
		s.OnEnd()
	}
	return nil
}

// Permit reports whether a list of permissions covers a call, and the limits that it then has.
func Permit(all []Permission, ask agents.Ask) (agents.Limits, error) {
	l, _, err := (&Grant{Blocks: []Block{{Permissions: all}}, ids: []Hash{{}}}).allow(ask)
	return l, err
}

// Hosts reports whether the site hosts an agent, by its principal's ID.
func (s *Store) Hosts(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.hosted[id]
	return ok
}

func (c credential) sameHosted(other credential) bool {
	return c.grant.ids[0] == other.grant.ids[0]
}

// checkHosted refuses the credential of a hosted agent that is not the configured one any
// more. The caller holds the lock.
func (s *Store) checkHosted(c credential) error {
	if !slices.ContainsFunc(s.hosted[c.principal], c.sameHosted) {
		return errRevoked
	}
	return nil
}

// credentialsOf returns the credentials of a principal. The caller holds the lock.
func (s *Store) credentialsOf(p agents.Principal) []credential {
	if c, ok := s.hosted[p.ID]; ok {
		return c
	}
	return s.credentials[p.ID]
}
