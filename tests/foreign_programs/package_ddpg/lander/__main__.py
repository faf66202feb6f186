from lander.train import main

main()
