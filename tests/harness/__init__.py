"""What end-to-end tests share: a whole server, and clients that show every byte."""
