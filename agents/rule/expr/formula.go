package expr

import (
	"time"

	"agentsite/device"
)

// CompileNumber compiles a formula, an expression that is a number, as Compile does a condition. unit is
// what the number has to be in, "?" for any; a number without a unit fits each.
func (u *Uses) CompileNumber(text, unit string, lookup func(address string) (p Point, ok bool),
	names func() []string) (*Program, error) {
	p := &parser{text: text, lookup: lookup, names: names, prog: &Program{text: text, uses: u}}
	x := p.whole(p.sum, "the formula is empty: write such as clamp(climate/temperature / 1 Cel * 4, 20, 80)",
		"an arithmetic sign")
	if p.wantNumber(&x); p.err == nil && x.unit != "" && x.unit != anyUnit && unit != anyUnit && x.unit != unit {
		p.fail(x.off, x.end, "the formula is in %s, and the output is %s: divide by a number in %[1]s, such as (%[3]s) / 10 %[1]s",
			x.unit, inUnit(unit), p.source(x))
	}
	if p.err != nil {
		return nil, p.err
	}
	if x.varies != 0 { // a comparison would say when it changes
		x.node.wait = waitSecond
	}
	p.prog.root = x.node
	return p.prog, nil
}

func inUnit(unit string) string {
	if unit == "" {
		return "a number without a unit"
	}
	return "in " + unit
}

// clamp parses the arguments of clamp: a number and the least and the greatest that it may be.
func (p *parser) clamp() operand {
	x := p.nested(p.sum)
	var bounds [2]operand
	for i := range bounds {
		if !p.isOperator(",") {
			p.fail(p.tok.off, p.tok.end, "clamp takes a number, its least and its greatest: write such as clamp(a/b, 20, 80)")
		}
		p.advance()
		bounds[i] = p.nested(p.sum)
	}
	lo, hi := bounds[0], bounds[1]
	if p.err == nil && lo.literal && hi.literal && lo.node.val.Number() > hi.node.val.Number() {
		p.fail(lo.off, hi.end, "the least is above the greatest: write the smaller first")
	}
	x = p.extreme(token{text: "max"}, x, lo)
	if p.err != nil {
		return operand{}
	}
	return p.extreme(token{text: "min"}, x, hi)
}

// Number evaluates a formula; next as Eval has it.
func (p *Program) Number(env Env) (n float64, known bool, next time.Duration) {
	e := evaluation{env: env, uses: p.uses}
	v := e.eval(p.root)
	if p.root.wait == waitSecond {
		e.soon(time.Second)
	}
	if e.next > 0 {
		next = max(e.next, minNext)
	}
	return v.Number(), v.Type() == device.TypeNumber, next
}
