package mcp

import "agentsite/transport/rpc"

// The members that nearly every request has are decoded without reflection. What is not named here
// is left to the codecs.

func (p *Params) SetMember(name []byte, v rpc.Raw) bool {
	if string(name) != "_meta" {
		return false
	}
	p.Meta = &p.own
	return v.Walk(p.Meta)
}

func (p *callParams) SetMember(name []byte, v rpc.Raw) bool {
	switch string(name) {
	case "name":
		return v.SetText(&p.Name)
	case "arguments":
		p.Arguments = v
		return true
	}
	return p.Params.SetMember(name, v)
}

func (p *readParams) SetMember(name []byte, v rpc.Raw) bool {
	if string(name) == "uri" {
		return v.SetText(&p.URI)
	}
	return p.Params.SetMember(name, v)
}

func (m *RequestMeta) SetMember(name []byte, v rpc.Raw) bool {
	switch string(name) {
	case "io.modelcontextprotocol/protocolVersion":
		return v.SetText(&m.Version, Versions...)
	case "io.modelcontextprotocol/clientCapabilities":
		m.Capabilities = &m.capabilities
		return v.Walk(m.Capabilities)
	case "io.modelcontextprotocol/clientInfo":
		m.Client = new(Implementation)
		return v.Walk(m.Client)
	case "agentsite/text":
		return v.SetText(&m.Text, textNone)
	}
	return false
}

func (c *clientCapabilities) SetMember([]byte, rpc.Raw) bool { return false }

func (i *Implementation) SetMember(name []byte, v rpc.Raw) bool {
	switch string(name) {
	case "name":
		return v.SetText(&i.Name)
	case "title":
		return v.SetText(&i.Title)
	case "version":
		return v.SetText(&i.Version)
	}
	return false
}
