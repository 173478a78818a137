// Package llm is the kind of agent that understands words: a language model that another machine
// serves, with the tools of the site that its owner allowed.
//
// Nothing depends on what the model says. It calls as a principal with its own permissions; what it
// may still do after it has read the words of others is computed here (see taint); budgets are
// checked before a request is sent; and the receipt of an answer is made from the steps that the
// site has written down, whatever the model claims.
package llm
