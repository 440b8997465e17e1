# Waits for the model's service, which has chosen a port.
cat > wait_for_model.sh <<'EOF'
until [ -s port.txt ] && python -c 'import socket, sys; socket.create_connection(("127.0.0.1", int(open("port.txt").read())))' 2> /dev/null
do sleep 0.05; done
EOF
