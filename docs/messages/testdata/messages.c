/* Messages in the forms that C code has them. Nothing compiles it. */
void prints(int n)
{
	other("is no message of ours");
	pw_warn("C prints %s; and "
		"joins literals", name(n));
	pw_warn("%s", n ? "one of two is chosen" : "short");
}
