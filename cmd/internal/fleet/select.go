package fleet

import (
	"path"
	"slices"
	"strings"

	"agentsite/cmd/internal/peer"
	"agentsite/node/state"
)

// Selection chooses contacts. The zero one chooses all that the person owns.
type Selection struct {
	Sites []string // patterns of names, such as green*; a site that matches one is chosen
	Tags  []string // of which a chosen site has one; with Sites, both must fit
}

// maxNames bounds the names that an error lists.
const maxNames = 60

// From returns the chosen ones of the contacts, by their names. A pattern or a tag that fits none of them is an error,
// which lists the existing names or tags.
func (s Selection) From(known []peer.Contact) ([]peer.Contact, error) {
	if len(known) == 0 {
		return nil, state.Mistakef("you know no site yet: agentsite claim adds one, by the address that it shows")
	}
	for _, pattern := range s.Sites {
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, state.Mistakef("--sites: %q is no pattern; write names and * such as 'green*,shed'", pattern)
		}
		fits := func(k peer.Contact) bool { return matches(pattern, k.Name) }
		if !slices.ContainsFunc(known, fits) {
			return nil, state.Mistakef("no site of yours is called %q: you know %s", pattern, listed(known, nameOf))
		}
	}
	for _, tag := range s.Tags {
		if !slices.ContainsFunc(known, func(k peer.Contact) bool { return slices.Contains(k.Tags, tag) }) {
			return nil, state.Mistakef("no site of yours has the tag %q: "+
				"agentsite sites tag NAME %s gives it one; your tags are %s",
				tag, state.ShellQuote(tag), listed(known, tagsOf))
		}
	}
	var chosen []peer.Contact
	for _, k := range known {
		if s.chooses(k) {
			chosen = append(chosen, k)
		}
	}
	switch {
	case len(chosen) > 0:
	case len(s.Sites)+len(s.Tags) > 0:
		return nil, state.Mistakef("no site has both: your sites with their tags are %s", listed(known, describe))
	default:
		return nil, state.Mistakef("you own no site: agentsite claim makes you the owner of one, and --sites chooses sites "+
			"that you "+
			"only may use: %s", listed(known, nameOf))
	}
	slices.SortFunc(chosen, func(a, b peer.Contact) int { return strings.Compare(a.Name, b.Name) })
	return chosen, nil
}

func (s Selection) chooses(k peer.Contact) bool {
	named := func(pattern string) bool { return matches(pattern, k.Name) }
	tagged := func(tag string) bool { return slices.Contains(k.Tags, tag) }
	if len(s.Sites)+len(s.Tags) == 0 {
		return k.Owner
	}
	return (len(s.Sites) == 0 || slices.ContainsFunc(s.Sites, named)) &&
		(len(s.Tags) == 0 || slices.ContainsFunc(s.Tags, tagged))
}

func matches(pattern, name string) bool {
	ok, _ := path.Match(pattern, name)
	return ok
}

func nameOf(k peer.Contact) []string { return []string{k.Name} }
func tagsOf(k peer.Contact) []string { return k.Tags }
func describe(k peer.Contact) []string {
	return []string{k.Name + " (" + strings.Join(k.Tags, " ") + ")"}
}

// listed returns words of contacts, each once, as a sentence's end.
func listed(known []peer.Contact, words func(peer.Contact) []string) string {
	var all []string
	for _, k := range known {
		all = append(all, words(k)...)
	}
	all = slices.Compact(slices.Sorted(slices.Values(all)))
	switch {
	case len(all) == 0:
		return "none"
	case len(all) > maxNames:
		return strings.Join(all[:maxNames], ", ") + " and others"
	}
	return strings.Join(all, ", ")
}
