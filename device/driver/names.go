package driver

import (
	"cmp"
	"strconv"

	"agentsite/device"
)

// longest is the length of a name.
const longest = 24

// Names gives the points of a found device valid names, each once. The zero value is ready. It is not safe for
// concurrent use.
type Names struct{ given map[string]bool }

// New returns a name that is made of what the other side calls the point, or of usual where that has no letters for one.
// A second point of the same name has -2 at its end.
func (n *Names) New(said, usual string) string {
	base := cmp.Or(device.SuggestName(said), usual)
	name := base
	for i := 2; n.given[name]; i++ {
		end := "-" + strconv.Itoa(i)
		name = base[:min(len(base), longest-len(end))] + end
	}
	if n.given == nil {
		n.given = make(map[string]bool)
	}
	n.given[name] = true
	return name
}
