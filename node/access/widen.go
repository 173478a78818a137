package access

import (
	"slices"
	"time"

	"agentsite/agents"
)

// Widened returns the name of the token of a program that signed in, and the permission of that token with
// what an ask needs added. It is not ok where the permission covers the ask or has ended, for an ask that no
// permission can be about, and for any other principal.
func (s *Store) Widened(p agents.Principal, ask agents.Ask) (token, may string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.file.Tokens, func(t Token) bool { return t.SignIn != nil && t.principal() == p.ID })
	if i < 0 {
		return "", "", false
	}
	c := s.credentialsOf(p)[0]
	if s.invalid(c) || len(c.grant.Blocks) > 1 {
		return "", "", false // of several, an owner signed only the first
	}
	may, ok = widen(c.grant.Blocks[0].Permissions, ask)
	return c.token, may, ok
}

// releaseTool returns outputs to safe. widen adds it alone, and not the word that also moves them.
var releaseTool = agents.Ask{Op: agents.OpMove}.Name()

// widen returns the text of permissions that allow an ask, too. The part that decided so far keeps its limits,
// but for those that refuse the ask. It is not ok where nothing is to be added, or no permission is about that.
func widen(all []Permission, ask agents.Ask) (text string, ok bool) {
	if _, err := Permit(all, ask); err == nil || ask.For < 0 || ask.For > maxLength.Duration() ||
		slices.Contains(ask.Points, "*") { // a pattern, and nothing that can be called
		return "", false
	}
	name, length := ask.Name(), Seconds((ask.For+time.Second-1)/time.Second)
	points := ask.Points
	if len(points) == 0 {
		points = noPoint[:]
	}
	var lacking []string
	for _, point := range points {
		i := slices.IndexFunc(all, func(p Permission) bool { return p.covers(name, point, ask.Effect) })
		if i < 0 {
			lacking = append(lacking, point)
			continue
		}
		part := all[i]
		if part.allow(ask, new(agents.Limits)) == nil {
			continue
		}
		part.Points = []string{point}
		if part.Lease > 0 {
			part.Lease = max(part.Lease, length)
		}
		if r := part.Range; r != nil && !ask.Value.IsZero() {
			part.Range = &Range{Min: min(r.Min, ask.Value.Number()), Max: max(r.Max, ask.Value.Number())}
		}
		all = slices.Concat(all[:i], []Permission{part}, slices.DeleteFunc(slices.Clone(all[i:]), part.hides))
	}
	if lacking != nil {
		added := Permission{Tools: []string{name}, Points: lacking, Lease: length}
		for _, a := range actions {
			if !slices.Contains(a.tools, name) || name == releaseTool {
				continue
			}
			added.Tools = a.tools
			switch {
			case len(ask.Points) > 0:
			case a.word == wordStop:
				added.Points = nil
			case a.word == actions[0].word:
				added.Points = []string{"*"}
			}
		}
		slices.Sort(added.Points)
		added.Points = slices.Compact(added.Points)
		all = slices.Concat(all, []Permission{added})
	}
	for _, p := range all {
		if p.check() != nil {
			return "", false
		}
	}
	text = FormatPermissions(all)
	_, err := ParsePermissions(text)
	if err == nil {
		_, err = Permit(all, ask)
	}
	return text, err == nil
}
