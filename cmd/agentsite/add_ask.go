package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"agentsite/cmd/internal/ops"
	"agentsite/cmd/internal/site"
	"agentsite/device"
	"agentsite/node/acts"
	"agentsite/node/config"
)

// ask asks a person for what the command line left out: the part, the name and the keys.
func (p *addition) ask(ctx context.Context, now acts.Configuration) error {
	suggested := ""
	if p.value("driver") == "" {
		var err error
		if suggested, err = p.askPart(ctx); err != nil {
			return err
		}
	}
	for p.name == "" {
		usual := freeName(now, suggested, p.value("driver"))
		said, err := p.question(ctx, "name of the device", usual)
		if err != nil {
			return err
		}
		err = device.CheckName(said)
		if err == nil {
			err = config.Free(now.File, []byte(now.Text), said)
		}
		if err != nil {
			line, _, _ := strings.Cut(err.Error(), "\n")
			p.note("%s", line)
			continue
		}
		p.name = said
	}
	return p.askKeys(ctx, false)
}

// freeName returns a name that the configuration does not have.
func freeName(now acts.Configuration, suggested, driver string) string {
	if suggested == "" {
		suggested = device.SuggestName(driver[strings.Index(driver, ":")+1:])
	}
	name := suggested
	for n := 2; n < 100 && config.Free(now.File, []byte(now.Text), name) != nil; n++ {
		name = suggested + "-" + strconv.Itoa(n)
	}
	if device.CheckName(name) != nil {
		return ""
	}
	return name
}

// askPart offers the parts that a scan finds, and takes a number, a driver or the name of a part. It returns
// the name that the scan suggests; "" for none.
func (p *addition) askPart(ctx context.Context) (string, error) {
	p.note("looking for connected parts")
	found, err := p.at.scan(ctx)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		found.Trouble = append(found.Trouble, err.Error())
	}
	for _, t := range found.Trouble {
		p.remark("warning: " + continued(t))
	}
	var drafts []acts.Draft
	var rows [][]string
	for _, f := range found.Found {
		for _, d := range f.Drafts {
			drafts = append(drafts, d)
			n := strconv.Itoa(len(drafts))
			rows = append(rows, []string{n, clean(f.Where), clean(f.What), clean(f.Confidence), clean(d.Device)})
		}
	}
	if len(rows) > 0 {
		if err := table(p.out, []string{"", "WHERE", "WHAT", "CONFIDENCE", "NAME"}, rows); err != nil {
			return "", err
		}
	} else {
		p.say("No new part was found that has a driver.")
	}
	for {
		which := "driver or part, such as relay or bme280"
		if len(drafts) > 0 {
			which = "number, or " + which
		}
		said, err := p.question(ctx, which, "")
		if err != nil {
			return "", err
		}
		if n, err := strconv.Atoi(said); err == nil {
			if n < 1 || n > len(drafts) {
				p.note("%d is none of the numbers above", n)
				continue
			}
			d := drafts[n-1]
			for _, s := range d.Set {
				if p.value(s.Key) == "" { // the command line's are first
					p.put(s.Key, s.Value)
				}
			}
			return d.Device, nil
		}
		d, err := ops.DriverNamed(said, site.AllDrivers())
		if err != nil {
			p.note("%v", err)
			continue
		}
		p.put("driver", d.Name)
		if d.PartKey != "" && p.value(d.PartKey) == "" {
			p.put(d.PartKey, d.PartValue)
		}
		return "", nil
	}
}

// askKeys asks for the driver's keys that are not set, or again for all of them.
func (p *addition) askKeys(ctx context.Context, again bool) error {
	all := site.AllDrivers()
	d, err := ops.DriverNamed(p.value("driver"), all)
	if err != nil {
		return err
	}
	for _, k := range ops.PartKeys(d, all) {
		if p.value(k.Key) != "" && !again {
			continue
		}
		for asked := true; asked; {
			p.tell("%s", k.String())
			said, err := p.question(ctx, k.Key, p.value(k.Key))
			if err != nil {
				return err
			}
			switch {
			case said == "" && k.Required:
				p.note("%s is always needed", k.Key)
				continue
			case said == "":
			default:
				if err := ops.CheckSetting(d.Name, config.Setting{Key: k.Key, Value: said}, all); err != nil {
					p.note("%v", err)
					continue
				}
			}
			p.put(k.Key, said)
			asked = false
		}
	}
	return nil
}

// asksFor reports whether askKeys asks for a key, or has a value, that one of the mistakes is about.
func (p *addition) asksFor(mistakes []acts.Mistake) bool {
	all := site.AllDrivers()
	d, err := ops.DriverNamed(p.value("driver"), all)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(ops.PartKeys(d, all), func(k config.Key) bool {
		value := p.value(k.Key)
		return slices.ContainsFunc(mistakes, func(m acts.Mistake) bool {
			return strings.Contains(m.Says, k.Key) || value != "" && strings.Contains(m.Says, value)
		})
	})
}

// askOther asks for one key of any, as a driver whose keys all may be left out needs some of them all the same. A key
// without a value is taken out.
func (p *addition) askOther(ctx context.Context) error {
	said, err := p.question(ctx, "key and value to add or change, such as address=192.168.1.20", "")
	if err != nil {
		return err
	}
	key, value, ok := strings.Cut(said, "=")
	if !ok {
		return usagef("nothing is changed; agentsite drivers %s lists the keys", p.value("driver"))
	}
	p.put(strings.TrimSpace(key), strings.TrimSpace(value))
	return nil
}

// question asks for a line; nothing typed is usual.
func (p *addition) question(ctx context.Context, what, usual string) (string, error) {
	prompt := what + ": "
	if usual != "" {
		prompt = fmt.Sprintf("%s [%s]: ", what, usual)
	}
	said, err := p.prompt(ctx, clean(prompt), false)
	if err != nil {
		return "", fmt.Errorf("nothing is changed: %w", err)
	}
	if said = strings.TrimSpace(said); said == "" {
		return usual, nil
	}
	return said, nil
}
