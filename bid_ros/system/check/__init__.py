"""What ``bid check`` looks at: each probe measures one thing and says what to do about it. None moves anything."""
