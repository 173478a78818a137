package imports

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/bundle"
	"agentsite/node/config"
	"agentsite/node/hosted"
)

const maxCandidates = 8 // that an error lists

// bind chooses a point for each need: the named point, or else the only fitting one.
func bind(b *bundle.Bundle, named []bundle.Binding, points []agents.Point) ([]bundle.BoundNeed, error) {
	var names []string
	for _, n := range b.Needs {
		names = append(names, n.Name)
	}
	for i, c := range named {
		if !slices.Contains(names, c.Need) {
			return nil, fmt.Errorf("it has no need %.40q%s", c.Need, device.Suggest(c.Need, names, "need"))
		}
		if slices.ContainsFunc(named[:i], func(other bundle.Binding) bool { return other.Need == c.Need }) {
			return nil, fmt.Errorf("%s is bound twice; write --bind %s=POINT once", c.Need, c.Need)
		}
	}
	all := make([]bundle.BoundNeed, 0, len(b.Needs))
	for _, n := range b.Needs {
		var fit, addresses []string
		for _, p := range points {
			addresses = append(addresses, p.Point)
			if n.Fits(p.Kind, p.Unit) == nil {
				fit = append(fit, p.Point)
			}
		}
		k := slices.IndexFunc(named, func(c bundle.Binding) bool { return c.Need == n.Name })
		switch {
		case k >= 0:
			p := slices.IndexFunc(points, func(p agents.Point) bool { return p.Point == named[k].Point })
			if p < 0 {
				return nil, fmt.Errorf("there is no point %.60q here%s", named[k].Point, device.Suggest(named[k].Point, addresses, "point"))
			}
			if err := n.Fits(points[p].Kind, points[p].Unit); err != nil {
				return nil, fmt.Errorf("%s cannot be it: %w", points[p].Point, err)
			}
			all = append(all, bundle.BoundNeed{Need: n.Name, Point: points[p].Point})
		case len(fit) == 1:
			all = append(all, bundle.BoundNeed{Need: n.Name, Point: fit[0]})
		case len(fit) == 0:
			return nil, fmt.Errorf("it needs %s, a %s%s, and this site has none", n.Name, n.Kind, inUnit(n.Unit))
		default:
			return nil, fmt.Errorf("several points could be its need %s: choose one with --bind %s=POINT, of %s", n.Name, n.Name, some(fit))
		}
	}
	return all, nil
}

func some(names []string) string {
	if len(names) > maxCandidates {
		return strings.Join(names[:maxCandidates], ", ") + fmt.Sprintf(" and %d more", len(names)-maxCandidates)
	}
	return strings.Join(names, ", ")
}

// wishHere returns the wish of an import about the points that its needs are bound to.
func wishHere(i bundle.Import) string {
	may, err := access.ParsePermissions(i.Bundle.May)
	if err != nil { // none
		return ""
	}
	rename := renames(i)
	for k := range may {
		may[k].Points = slices.Clone(may[k].Points)
		for n, point := range may[k].Points {
			may[k].Points[n] = rename(point)
		}
	}
	return access.FormatPermissions(may)
}

// Export returns the content of a bundle for an agent of the site: its definition as written, with
// needs for the points that it names. The caller signs it.
func (s *Store) Export(ctx context.Context, who agents.Principal, name string) (bundle.Content, error) {
	all := s.Hosted.Configured()
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
	}
	k := slices.Index(names, name)
	if k < 0 {
		return bundle.Content{}, device.Faultf(device.Invalid, "there is no agent %.60q here%s", name, device.Suggest(name, names, "agent"))
	}
	of := all[k]
	if !slices.Contains(bundle.Kinds, of.Entry.Kind) {
		return bundle.Content{}, device.Faultf(device.Invalid, "%s is of kind %s, and a bundle has only agents that are data: rules and routines", name, of.Entry.Kind)
	}
	points, err := s.Points(ctx, who)
	if err != nil {
		return bundle.Content{}, err
	}
	c, _, err := contentOf(of, points)
	return c, err
}

// Propose keeps the text of a rule as a draft, which does nothing before an owner accepts it. who
// wrote it for asker, and has to see the points that it names. may is the permission that it wishes
// for, and seal signs it.
func (s *Store) Propose(ctx context.Context, who agents.Principal, asker, name, may, definition string, seal func(bundle.Content) ([]byte, error)) (Draft, error) {
	entry, err := config.ParseAgent(name, name, "rule", may, []byte(definition))
	if err != nil {
		return Draft{}, oneLine(err)
	}
	of, err := s.Hosted.Define(hosted.Imported{Agent: entry}, true)
	if err != nil {
		return Draft{}, oneLine(err)
	}
	points, err := s.Points(ctx, who)
	if err != nil {
		return Draft{}, err
	}
	c, bound, err := contentOf(of, points)
	if err != nil {
		return Draft{}, err
	}
	file, err := seal(c)
	if err != nil {
		return Draft{}, invalid(err)
	}
	return s.add(ctx, who, Request{Bundle: file, Bind: bound}, bundle.Proposal{Agent: who.ID, Asker: asker})
}

// contentOf returns the content of an agent's bundle, with the points that its needs are bound to.
func contentOf(of hosted.Configured, points []agents.Point) (c bundle.Content, bound []bundle.Binding, err error) {
	c = bundle.Content{Name: of.Name, Kind: of.Entry.Kind, Needs: []bundle.Need{},
		Tags: of.Entry.Tags, Description: bundle.Clip(of.Entry.Description)}
	needs := make(map[string]string) // addresses of needs, by that of the point
	for _, address := range of.Reads {
		p := slices.IndexFunc(points, func(p agents.Point) bool { return p.Point == address })
		if p < 0 {
			return c, nil, device.Faultf(device.Invalid, "%s names %.60q, which is no point of this site now, so that nobody can say what it needs; look at agentsite points", of.Name, address)
		}
		n := bundle.Need{Name: needName(c.Needs, address), Kind: points[p].Kind, Unit: points[p].Unit, For: bundle.Clip(points[p].Description)}
		c.Needs, bound = append(c.Needs, n), append(bound, bundle.Binding{Need: n.Name, Point: address})
		needs[address] = n.Address()
	}
	slices.SortFunc(c.Needs, func(a, b bundle.Need) int { return strings.Compare(a.Name, b.Name) })
	c.Definition = of.Entry.Renamed(func(address string) string { return cmp.Or(needs[address], address) }).Text()
	c.May = wish(of.Entry.May, of.Reads, points, needs)
	return c, bound, nil
}

// needName names a need after its point: temperature, or climate-temperature where that is taken.
func needName(others []bundle.Need, address string) string {
	of, point, _ := device.SplitAddress(address)
	for i := 0; ; i++ {
		name := point
		switch {
		case i == 1:
			name = device.SuggestName(of + "-" + point)
		case i > 1:
			name = device.SuggestName(fmt.Sprintf("%.20s-%d", point, i))
		}
		if !slices.ContainsFunc(others, func(n bundle.Need) bool { return n.Name == name }) {
			return name
		}
	}
}

// wish returns a permission with needs in place of points. It leaves out the other points.
func wish(may string, names []string, points []agents.Point, needs map[string]string) string {
	all, err := access.ParsePermissions(may)
	if err != nil { // as where it may nothing
		return ""
	}
	var parts []access.Permission
	for _, p := range all {
		var about []string
		for _, of := range points {
			if slices.Contains(names, of.Point) && concerns(p, of) {
				about = append(about, needs[of.Point])
			}
		}
		slices.Sort(about)
		if p.Points = about; len(about) > 0 {
			parts = append(parts, p)
		}
	}
	text := access.FormatPermissions(parts)
	if _, err := access.ParsePermissions(text); err != nil { // points of one device became needs, of which one part hides another
		return ""
	}
	return text
}

// concerns reports whether a permission is about a point, and about an operation on its kind.
func concerns(p access.Permission, of agents.Point) bool {
	switch {
	case slices.Contains(p.Tools, "switch_output") && !of.Kind.Output(),
		slices.Contains(p.Tools, "show_text") && of.Kind != device.KindText,
		slices.Contains(p.Tools, "capture_image") && of.Kind != device.KindImage:
		return false
	}
	return slices.ContainsFunc(p.Points, func(pattern string) bool {
		return pattern == "*" || pattern == of.Point || strings.HasPrefix(of.Point, pattern+"/")
	})
}

func inUnit(unit string) string {
	if unit == "" {
		return ""
	}
	return " in " + unit
}
