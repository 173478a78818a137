package lan

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// browseTime is the time that a Browse waits for answers: three questions, at 0, 1 and 3 s.
const browseTime = 5 * time.Second

// Instance is a device that offers a service. All of it is as the device says, with printable characters only.
type Instance struct {
	Name      string // of the instance, such as "kitchen"
	Host      string // such as "kitchen.local"
	Port      uint16
	Addresses []netip.Addr      // at most 8; may be empty
	Text      map[string]string // the TXT record, with keys in small letters
}

// Browse returns what offers a service, such as "_esphomelib._tcp", by name. It waits for answers for five seconds,
// or until ctx ends, and returns at most 64 instances.
func Browse(ctx context.Context, service string) ([]Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, browseTime)
	defer cancel()
	name, err := fqdn(service + ".local")
	if err != nil {
		return nil, err
	}
	q, err := openQuery()
	if err != nil {
		return nil, err
	}
	defer q.close()
	b := &browser{service: name, answers: newAnswers()}
	_ = q.run(ctx, b.questions, func(p packet) time.Duration {
		b.answers.add(p, b.questions())
		return 0
	})
	return b.instances(), nil
}

// browser collects the instances of a service.
type browser struct {
	service string
	answers *answers
}

// questions asks for instances, and for what is missing of those that are known: most responders send it unasked
// (RFC 6763, section 12).
func (b *browser) questions() []question {
	all := []question{{b.service, dns.TypePTR}}
	for _, escaped := range b.answers.pointed {
		name := strings.ToLower(escaped)
		srv := b.answers.service[name]
		switch {
		case srv == nil:
			all = append(all, question{name, dns.TypeSRV}, question{name, dns.TypeTXT})
		case len(b.answers.addrs[strings.ToLower(srv.Target)]) == 0:
			all = append(all, addressQuestions(strings.ToLower(srv.Target))...)
		}
	}
	return all
}

// instances returns those of which the host and the port are known.
func (b *browser) instances() (all []Instance) {
	for _, escaped := range b.answers.pointed {
		name := unescape(escaped[:len(escaped)-len("."+b.service)])
		srv := b.answers.service[strings.ToLower(escaped)]
		if srv == nil || !printable(name) || len(name) > 63 {
			continue
		}
		all = append(all, Instance{
			Name: name, Host: strings.ToLower(strings.TrimSuffix(srv.Target, ".")), Port: srv.Port,
			Addresses: b.answers.addrs[strings.ToLower(srv.Target)], Text: textOf(b.answers.text[strings.ToLower(escaped)]),
		})
	}
	slices.SortFunc(all, func(a, b Instance) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// textOf returns the pairs of a TXT record: RFC 6763, section 6.4. Of two with one key the first counts.
func textOf(text []string) map[string]string {
	pairs := make(map[string]string)
	for _, s := range text[:min(len(text), maxText)] {
		key, value, _ := strings.Cut(unescape(s), "=")
		key = strings.ToLower(key)
		if _, twice := pairs[key]; !twice && key != "" && printable(key) && printable(value) {
			pairs[key] = value
		}
	}
	return pairs
}
