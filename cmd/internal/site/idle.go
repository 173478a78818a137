package site

import "agentsite/node/access"

// Idle lists what permissions in words say that is about no point of a site, whose kinds
// are given by their names.
func Idle(words string, kinds map[string]string) []string {
	var points []string
	for point := range kinds {
		points = append(points, point)
	}
	return access.Idle(words, points, func(verb, point string) bool {
		kind := kinds[point]
		switch verb {
		case "set":
			return kind == "switch" || kind == "level"
		case "show":
			return kind == "text"
		case "capture":
			return kind == "image"
		}
		return true
	})
}
