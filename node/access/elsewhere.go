package access

import (
	"fmt"
	"slices"
)

// At translates permissions on another site to the names of this site, which calls that site by
// name. climate becomes NAME/climate, the agent tidy becomes NAME/tidy, and * becomes NAME.
func At(name string, all []Permission) ([]Permission, error) {
	out := make([]Permission, len(all))
	for i, p := range all {
		if len(p.Points) == 0 {
			return nil, fmt.Errorf("in %q: it names no point and no agent, and another site is asked for those only; leave it out", p.String())
		}
		example := "device/point"
		if p.asks() {
			example = "the agent's name"
		}
		points := make([]string, len(p.Points))
		for k, pattern := range p.Points {
			if p.AtOtherSite(pattern) {
				return nil, fmt.Errorf("in %q: %s names another site; write %s, as that site has it", p.String(), pattern, example)
			}
			if points[k] = name + "/" + pattern; pattern == "*" {
				points[k] = name
			}
		}
		slices.Sort(points)
		p.Points = slices.Compact(points)
		out[i] = p
	}
	return out, nil
}

// Elsewhere returns the permissions on the site that is called by name, in that site's names; nil
// for none. It reverses At.
func Elsewhere(name string, all []Permission) (out []Permission) {
	for _, p := range all {
		var points []string
		for _, pattern := range p.Points {
			if pattern == name {
				points = append(points, "*")
			} else if within(name, pattern) {
				points = append(points, pattern[len(name)+1:])
			}
		}
		if points != nil {
			slices.Sort(points)
			p.Points = points
			out = append(out, p)
		}
	}
	return out
}
