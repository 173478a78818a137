package node

import (
	"agentsite/agents"
	"agentsite/device"
)

// Readable returns the points that p may read now, with their kinds, units, values and safe values. It is no call:
// nothing is charged, and no owner is asked.
func (n *Node) Readable(p agents.Principal) ([]agents.Point, error) {
	if err := known(p); err != nil {
		return nil, err
	}
	v, _ := n.seenBy(p)
	all := make([]agents.Point, 0, v.read)
	for _, of := range v.points {
		if !v.mayRead(of.Address) {
			continue
		}
		if err := n.May(p, readOf(of.Address)); err != nil && device.AsFault(err).Kind != device.Busy {
			continue // an owner has to confirm it
		}
		o := agents.Point{Point: of.Address, Kind: of.Kind, Unit: of.Unit, Values: of.Values}
		if policy, err := v.Outputs.Policy(of.Address); of.Kind.Output() && err == nil {
			o.Safe = policy.Safe
		}
		all = append(all, o)
	}
	return all, nil
}

// MayRead returns why ChargeRead would refuse. It charges nothing.
func (n *Node) MayRead(p agents.Principal, points []string) error {
	if err := known(p); err != nil {
		return err
	}
	for _, address := range points { // each may be of another permission
		if err := n.May(p, readOf(address)); err != nil {
			return err
		}
	}
	return nil
}

// ChargeRead charges the permissions of p for readings of points that it is told, as Read would.
func (n *Node) ChargeRead(p agents.Principal, points []string) error {
	if err := known(p); err != nil {
		return err
	}
	return n.charge(p, readOf(points...))
}

func readOf(points ...string) agents.Ask {
	return agents.Ask{Op: agents.OpRead, Points: points, Effect: agents.Reads}
}

// OnPoints is On for values of points, and for what comes and goes.
func (h *Hub) OnPoints(points []string, wake func()) (leave func()) {
	uris := make([]string, len(points))
	for i, address := range points {
		uris[i] = h.uri(address)
	}
	return h.watchers.JoinFunc(agents.Change{Resources: true, Permissions: true}, uris, wake).Leave
}
