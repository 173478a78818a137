package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"agentsite/agents/agent"
	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/node/identity"
)

const (
	nameForm        = `[a-z0-9_-]{1,24}` // see device.CheckName
	namePattern     = `^` + nameForm + `$`
	durationWords   = `([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+`
	durationPattern = `^(0|` + durationWords + `)$`
	limitPattern    = `^(unlimited|` + durationWords + `)$`
	rangePattern    = `^-?[0-9].*\.\.-?[0-9].*$`
	unitPattern     = `^[!-~]*$`
	dutyPattern     = `^` + durationWords + `/` + durationWords + `$`
	ratePattern     = `^[0-9]+/` + durationWords + `$`
	slewPattern     = `^[0-9.eE+]+/(ms|s|m|h)$`
	claimPattern    = `^[A-Za-z0-9_-]{21}[AQgw]$`
	ownerPattern    = `^did:key:z6Mk[1-9A-HJ-NP-Za-km-z]{44}$`
	addressPattern  = `^` + nameForm + `/` + nameForm + `$`
)

// forms returns the schemas of types whose YAML form differs from their JSON form.
func forms() map[reflect.Type]*jsonschema.Schema {
	zero := jsonschema.Ptr(0.0)
	return map[reflect.Type]*jsonschema.Schema{
		// YAML 1.2 hands off and on to an editor as text.
		reflect.TypeFor[bool]():      {Enum: []any{true, false, "on", "off", "true", "false"}},
		reflect.TypeFor[string]():    {Types: []string{"string", "number", "boolean"}},
		durationType:                 {Types: []string{"string", "integer"}, Pattern: durationPattern, Minimum: zero, Maximum: zero},
		reflect.TypeFor[limit]():     {Type: "string", Pattern: limitPattern},
		reflect.TypeFor[age]():       {Type: "string", Pattern: agePattern},
		reflect.TypeFor[size]():      {Type: "string", Pattern: sizePattern},
		reflect.TypeFor[Duty]():      {Type: "string", Pattern: dutyPattern},
		reflect.TypeFor[Rate]():      {Type: "string", Pattern: ratePattern},
		reflect.TypeFor[Slew]():      {Type: "string", Pattern: slewPattern},
		reflect.TypeFor[quantity]():  {Types: []string{"number", "string"}},
		reflect.TypeFor[otherwise](): {Enum: []any{elseSafe, elseLatch, elseAlarm}},
		reflect.TypeFor[group]():     {Type: "string", Pattern: namePattern},
		reflect.TypeFor[address]():   {Type: "string", Pattern: addressPattern},
		reflect.TypeFor[confirmer](): {Enum: []any{"owner"}},
		reflect.TypeFor[state]():     {Types: []string{"boolean", "string"}},
		reflect.TypeFor[unit]():      {Types: []string{"string", "number"}, Pattern: unitPattern},
		rangeType:                    {Type: "string", Pattern: rangePattern},
		valueType:                    {Types: []string{"boolean", "number", "string"}, Pattern: `^(on|off|true|false)$`},
	}
}

// Schema returns the JSON Schema (2020-12) of a file, for editors. It accepts what Parse
// accepts, as far as a schema can say. The bytes depend on the drivers and the kinds of agents
// only. It fails for one whose keys have no form in YAML, or are this package's own.
func Schema(drivers []driver.Driver, kinds []agent.Kind) ([]byte, error) {
	own := make(map[string]*jsonschema.Schema)
	for name, defaults := range map[string]any{
		"site": siteSection{}, "http": HTTP{Listen: DefaultListen, HTTPS: DefaultHTTPS}, "discovery": Discovery{MDNS: true},
		"internet": Internet{Listen: DefaultInternet, PortMap: true}, "history": History{}, "approvals": Approvals{},
		"wot": WoT{}, "point": pointPart{},
	} {
		s, err := schemaOf(reflect.ValueOf(defaults))
		if err != nil {
			return nil, err
		}
		own[name] = s
	}
	site, internet, point := own["site"], own["internet"], own["point"]
	site.Properties["name"] = &jsonschema.Schema{Type: "string", Pattern: namePattern, Description: site.Properties["name"].Description}
	internet.Properties["realm"].Pattern = realmPattern
	internet.Properties["relays"].Items.Pattern, internet.Properties["relays"].MaxItems = relayPattern, jsonschema.Ptr(maxRelays)
	internet.Properties["public"].Pattern, internet.Properties["acme"].Pattern = publicPattern, acmePattern
	internet.Properties["ct"].Pattern = ctPattern
	internet.Properties["proxies"].MaxItems = jsonschema.Ptr(maxProxies)
	internet.DependentRequired = map[string][]string{"acme": {"public"}, "ct": {"public"}, "public_listen": {"public"}, "proxies": {"public", "public_listen"}}
	own["http"].DependentRequired = map[string][]string{"domain": {"certificate", "certificate_key"}, "certificate": {"domain"}, "certificate_key": {"domain"}}
	own["wot"].Properties["key_file"].Pattern, own["wot"].DependentRequired = keyFilePattern, map[string][]string{"key_file": {"register"}}
	callers := own["http"].Properties["callers"]
	callers.Items, callers.MaxItems = &jsonschema.Schema{Type: "string", Pattern: identity.WBAPattern}, jsonschema.Ptr(maxCallers)
	push := own["http"].Properties["push_hosts"]
	push.Items, push.MaxItems = &jsonschema.Schema{Type: "string", Pattern: pushHostPattern}, jsonschema.Ptr(maxPushHosts)
	root := &jsonschema.Schema{
		Schema:      "https://json-schema.org/draft/2020-12/schema",
		Title:       "agentsite.yaml",
		Description: "A physical AgentSite: what is wired to the board and what it may do.",
		Type:        "object",
		Required:    []string{"site"},
		Properties: map[string]*jsonschema.Schema{
			"site":      site,
			"owner":     {Type: "string", Pattern: ownerPattern, Description: "whose key owns the site, where nobody's does yet: agentsite identity --card - prints this line"},
			"claim":     {Type: "string", Pattern: claimPattern, Description: "the secret to claim the site by, 128 bits in base64url; without it the site makes one and shows it"},
			"clock":     {Enum: []any{lastKnown}, Description: "last-known has the site go by the last known time after a start, until a network or an owner tells it; a permission then lasts longer by as much as the site was off. Without it, what may act until a time waits"},
			"http":      own["http"],
			"protocols": protocolsSchema(),
			"wot":       own["wot"],
			"discovery": own["discovery"],
			"internet":  internet,
			"history":   own["history"],
			"approvals": own["approvals"],
			"devices":   {Types: []string{"object", "null"}, PropertyNames: &jsonschema.Schema{Pattern: namePattern}, AdditionalProperties: &jsonschema.Schema{Ref: "#/$defs/device"}},
			"agents":    {Types: []string{"object", "null"}, PropertyNames: &jsonschema.Schema{Pattern: namePattern}, AdditionalProperties: &jsonschema.Schema{Ref: "#/$defs/agent"}},
		},
		PropertyOrder:        sections,
		AdditionalProperties: nothing(),
		Defs:                 map[string]*jsonschema.Schema{"point": point},
	}
	single := &jsonschema.Schema{Enum: []any{}}
	families := []*jsonschema.Schema{single}
	choice := &jsonschema.Schema{Type: "object", Required: []string{"driver"}}
	root.Defs["device"] = choice
	for _, d := range drivers {
		def, err := driverSchema(d, point)
		if err != nil {
			return nil, fmt.Errorf("driver %s: %w", d.Name, err)
		}
		name := "driver-" + strings.TrimSuffix(d.Name, ":")
		root.Defs[name] = def
		if d.Of == nil {
			single.Enum = append(single.Enum, d.Name)
		} else {
			families = append(families, named(d))
		}
		choice.AllOf = append(choice.AllOf, &jsonschema.Schema{
			If:   &jsonschema.Schema{Required: []string{"driver"}, Properties: map[string]*jsonschema.Schema{"driver": named(d)}},
			Then: &jsonschema.Schema{Ref: "#/$defs/" + name},
		})
	}
	which := single
	if len(families) > 1 {
		which = &jsonschema.Schema{AnyOf: families}
	}
	which.Description = "what kind of device this is"
	choice.Properties = map[string]*jsonschema.Schema{"driver": which}
	var others []agent.Kind
	for _, k := range kinds {
		if _, ok := sectioned[k.Name]; !ok {
			others = append(others, k)
			continue
		}
		section, err := sectionSchema(k)
		if err != nil {
			return nil, err
		}
		root.Properties[k.Name] = section
	}
	agent, err := agentSchema(others)
	if err != nil {
		return nil, err
	}
	root.Defs["agent"] = agent
	text, err := json.MarshalIndent(root, "", "  ")
	return append(text, '\n'), err
}

// DriverSchema returns the JSON Schema (2020-12) of the entry of a device with that driver.
func DriverSchema(d driver.Driver) ([]byte, error) {
	point, err := schemaOf(reflect.ValueOf(pointPart{}))
	if err != nil {
		return nil, err
	}
	s, err := driverSchema(d, point)
	if err != nil {
		return nil, err
	}
	s.Schema, s.Defs = "https://json-schema.org/draft/2020-12/schema", map[string]*jsonschema.Schema{"point": point}
	return json.Marshal(s)
}

// protocolsSchema is the section of that name.
func protocolsSchema() *jsonschema.Schema {
	names := &jsonschema.Schema{}
	for _, name := range Protocols {
		names.Enum = append(names.Enum, name)
	}
	return &jsonschema.Schema{
		Type: "array", Items: names, UniqueItems: true,
		Description: "the protocols that HTTP and HTTPS speak beside MCP; " + strings.Join(DefaultProtocols, ", ") + " when not written",
	}
}

// named returns the schema of the driver's name, or of any name in its family.
func named(d driver.Driver) *jsonschema.Schema {
	if d.Of != nil {
		return &jsonschema.Schema{Type: "string", Pattern: "^" + regexp.QuoteMeta(d.Name) + "."}
	}
	return &jsonschema.Schema{Const: jsonschema.Ptr[any](d.Name)}
}

// driverSchema returns the schema of a device with that driver: its keys and this package's.
func driverSchema(d driver.Driver, point *jsonschema.Schema) (*jsonschema.Schema, error) {
	config := reflect.Indirect(reflect.ValueOf(d.Config()))
	if config.Kind() != reflect.Struct {
		return nil, fmt.Errorf("its configuration is a %s, not a pointer to a struct", config.Type())
	}
	for _, f := range fieldsOf(config.Type()) {
		if slices.Contains(ownKeys, f.key) {
			return nil, fmt.Errorf("its key %s is one that every device has; call it something else", f.key)
		}
	}
	s, err := schemaOf(config)
	if err != nil {
		return nil, err
	}
	ours, err := schemaOf(reflect.ValueOf(commonKeys{Every: DefaultEvery}))
	if err != nil {
		return nil, err
	}
	ours.Properties["driver"] = named(d)
	ours.Properties["driver"].Description = d.Doc
	ours.Properties[pointsKey] = &jsonschema.Schema{
		Type:                 "object",
		Description:          "what each output may do and how each measurement is read, where the device has several",
		PropertyNames:        &jsonschema.Schema{Pattern: namePattern},
		AdditionalProperties: &jsonschema.Schema{Ref: "#/$defs/point"},
	}
	// A driver's own key of the same name comes first, as it does in Parse.
	properties := map[string]*jsonschema.Schema{}
	for key := range point.Properties { // by reference, because they are long and drivers are many
		properties[key] = &jsonschema.Schema{Ref: "#/$defs/point/properties/" + key}
	}
	maps.Copy(properties, s.Properties)
	maps.Copy(properties, ours.Properties)
	s.Description, s.Properties = d.Doc, properties
	s.PropertyOrder = slices.Concat([]string{"driver"}, s.PropertyOrder, []string{"every"})
	s.Required = append([]string{"driver"}, s.Required...)
	return s, nil
}

// sectionSchema is the section of the agent of that kind.
func sectionSchema(k agent.Kind) (*jsonschema.Schema, error) {
	s, err := schemaOf(reflect.Indirect(reflect.ValueOf(k.New())))
	if err != nil {
		return nil, fmt.Errorf("kind %s: %w", k.Name, err)
	}
	ours, err := schemaOf(reflect.ValueOf(agentPart{}))
	if err != nil {
		return nil, err
	}
	s.Description = k.Doc
	for _, key := range []string{"may", "description"} {
		s.Properties[key] = ours.Properties[key]
		s.PropertyOrder = append(s.PropertyOrder, key)
	}
	return s, nil
}

// agentSchema is an agent of any kind: its kind's keys and ours.
func agentSchema(kinds []agent.Kind) (*jsonschema.Schema, error) {
	which := &jsonschema.Schema{Enum: []any{}, Description: "what kind of agent this is"}
	agent := &jsonschema.Schema{Type: "object", Required: []string{"kind"}, Properties: map[string]*jsonschema.Schema{"kind": which}}
	for _, k := range kinds {
		s, err := schemaOf(reflect.Indirect(reflect.ValueOf(k.New())))
		if err != nil {
			return nil, fmt.Errorf("kind %s: %w", k.Name, err)
		}
		ours, err := schemaOf(reflect.ValueOf(agentPart{}))
		if err != nil {
			return nil, err
		}
		for key, property := range ours.Properties {
			if s.Properties[key] != nil {
				return nil, fmt.Errorf("kind %s: its key %s is one that every agent has; call it something else", k.Name, key)
			}
			s.Properties[key] = property
		}
		is := &jsonschema.Schema{Const: jsonschema.Ptr[any](k.Name)}
		s.Description, s.Properties["kind"] = k.Doc, is
		s.PropertyOrder = slices.Concat(ours.PropertyOrder, s.PropertyOrder)
		s.Required = append([]string{"kind"}, s.Required...)
		which.Enum = append(which.Enum, k.Name)
		agent.AllOf = append(agent.AllOf, &jsonschema.Schema{
			If:   &jsonschema.Schema{Required: []string{"kind"}, Properties: map[string]*jsonschema.Schema{"kind": is}},
			Then: s,
		})
	}
	return agent, nil
}

// schemaOf returns the schema of a struct that has its defaults.
func schemaOf(v reflect.Value) (*jsonschema.Schema, error) {
	types := forms()
	addTexts(v.Type(), types)
	s, err := jsonschema.ForType(v.Type(), &jsonschema.ForOptions{TypeSchemas: types})
	if err != nil {
		return nil, err
	}
	refuseNull(s)
	return s, addDefaults(s, v)
}

// addTexts adds the types that implement encoding.TextUnmarshaler; a plain number is text
// too.
func addTexts(t reflect.Type, types map[reflect.Type]*jsonschema.Schema) {
	if _, known := types[t]; known {
		return
	}
	if reflect.PointerTo(t).Implements(textUnmarshaler) {
		types[t] = &jsonschema.Schema{Types: []string{"string", "number", "boolean"}}
		return
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		addTexts(t.Elem(), types)
	case reflect.Struct:
		for _, f := range fieldsOf(t) {
			addTexts(t.FieldByIndex(f.index).Type, types)
		}
	}
}

// refuseNull removes the null that stands for Go's nil: a key without a value is a mistake.
func refuseNull(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	s.Types = slices.DeleteFunc(s.Types, func(t string) bool { return t == "null" })
	if len(s.Types) == 1 {
		s.Type, s.Types = s.Types[0], nil
	}
	refuseNull(s.Items)
	refuseNull(s.AdditionalProperties)
	for _, p := range s.Properties {
		refuseNull(p)
	}
}

// addDefaults adds the defaults in v to the schema of its type, and the required keys.
func addDefaults(s *jsonschema.Schema, v reflect.Value) error {
	s.Required = nil
	for _, f := range fieldsOf(v.Type()) {
		property, value := s.Properties[f.key], v.FieldByIndex(f.index)
		if f.required(v) {
			s.Required = append(s.Required, f.key)
		}
		switch {
		case property.Properties != nil && value.Kind() == reflect.Struct:
			if err := addDefaults(property, value); err != nil {
				return err
			}
		case !value.IsZero():
			text, err := json.Marshal(plain(value.Interface()))
			if err != nil {
				return err
			}
			property.Default = text
		}
	}
	return nil
}

// plain returns a default as it is written in YAML.
func plain(v any) any {
	switch v := v.(type) {
	case time.Duration:
		return v.String()
	case device.Value:
		return v.Any()
	case device.Range:
		return v.String()
	}
	return v
}

// nothing returns the schema that refuses everything.
func nothing() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }
