package expr

import (
	"math"

	"agentsite/device"
)

// Never reports whether it is sure that the condition is never true: no value of one of the operands that
// it compares with constants makes it so, whatever the others are.
func (p *Program) Never() bool { return never(p.root) }

// Implies reports whether it is sure, as for Never, that q, of the same Uses, is true whenever p is.
func (p *Program) Implies(q *Program) bool {
	return never(&node{op: opAnd, a: p.root, b: &node{op: opNot, a: q.root}})
}

// quantity identifies an operand that has one value wherever a condition uses it.
type quantity struct {
	op    op
	index int32
}

func never(root *node) bool {
	values := map[quantity][]device.Value{}
	root.limits(values)
	for x, all := range values {
		possible := false
		for _, v := range all {
			var e evaluation
			possible = possible || e.eval(root.given(x, v)) != device.Bool(false)
		}
		if !possible {
			return true
		}
	}
	return false
}

// limits adds values of each quantity, between which no result changes.
func (n *node) limits(values map[quantity][]device.Value) {
	if n == nil {
		return
	}
	x := quantity{n.op, n.index}
	switch compared, constants := n.comparison(); {
	case compared != nil:
		x = quantity{compared.op, compared.index}
		for _, c := range constants {
			switch at := c.val.Number(); c.val.Type() {
			case device.TypeNumber:
				below, above := math.Nextafter(at, math.Inf(-1)), math.Nextafter(at, math.Inf(1))
				values[x] = append(values[x], device.Number(below), c.val, device.Number(above))
			case device.TypeBool:
				values[x] = append(values[x], device.Bool(false), device.Bool(true))
			default:
				values[x] = append(values[x], c.val, device.Text(""))
			}
		}
	case n.op == opNot || n.op == opAnd || n.op == opOr:
		n.a.limits(values)
		n.b.limits(values)
	case n.op == opPoint:
		values[x] = append(values[x], device.Bool(false), device.Bool(true))
	}
}

// comparison returns the quantity and the constants of a comparison between these only.
func (n *node) comparison() (x *node, constants []*node) {
	if n.op < opEqual {
		return nil, nil
	}
	for _, child := range [...]*node{n.a, n.b, n.c} {
		switch {
		case child == nil:
		case child.op == opConst:
			constants = append(constants, child)
		case x == nil && child.op < opNot && (child == n.a || n.c == nil):
			x = child
		default:
			return nil, nil
		}
	}
	return x, constants
}

// given returns the condition for one value of x, with all other operands unknown.
func (n *node) given(x quantity, v device.Value) *node {
	if n == nil {
		return nil
	}
	compared, _ := n.comparison()
	switch {
	case n.op == opConst:
		return n
	case n.op == opNot || n.op == opAnd || n.op == opOr:
		return &node{op: n.op, a: n.a.given(x, v), b: n.b.given(x, v)}
	case x == quantity{n.op, n.index}:
		return &node{val: v}
	case compared != nil && x == quantity{compared.op, compared.index}:
		is := node{op: n.op, a: n.a, b: n.b, c: n.c}
		if compared == n.a {
			is.a = &node{val: v}
		} else {
			is.b = &node{val: v}
		}
		return &is
	}
	return &node{} // an unknown constant
}
