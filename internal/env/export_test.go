package env

// Guard lets tests ask about addresses that they must not connect to.
var Guard = guard
